"""Platforms by name."""

ARCHITECTURES = ("a2a3", "a5")


def parse_platform(platform):
    """The architecture and the variant of a platform: `a2a3sim` is ("a2a3", "sim"), `a5` is ("a5", "onboard")."""
    is_simulator = platform.endswith("sim")
    architecture = platform[:-3] if is_simulator else platform
    if architecture not in ARCHITECTURES:
        names = [f"{one}{end}" for one in ARCHITECTURES for end in ("sim", "")]
        raise ValueError(f"there is no platform {platform!r}: use {', '.join(names)}")
    return architecture, "sim" if is_simulator else "onboard"
