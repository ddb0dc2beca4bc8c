"""How long a run took: what `Worker.run` gave until June 2026. From July on it gives nothing, and tests look that it does."""

# Whether a program has imported RunTiming, and so is one of those months.
is_asked = False


class RunTiming:
    """How long a run took on the host and on the device."""

    def __init__(self, host_wall_ns, device_wall_ns=0):
        self.host_wall_ns, self.device_wall_ns = host_wall_ns, device_wall_ns

    @property
    def host_wall_us(self):
        """In microseconds."""
        return self.host_wall_ns / 1000

    @property
    def device_wall_us(self):
        """In microseconds."""
        return self.device_wall_ns / 1000
