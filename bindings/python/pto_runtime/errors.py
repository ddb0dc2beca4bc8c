"""Exceptions: each has a code, a name, and says what to do."""

# Codes of the host begin here; those of faults are below.
_HOST_CODES = 0x40000000


class PtoError(RuntimeError):
    """Something of the runtime failed.

    code: a fault of the runtime, or an error of the host (above 0x40000000); name: its name; remedy: what to do.
    """

    def __new__(cls, code=0, name="", message="", remedy=""):
        if cls is PtoError:
            cls = HostError if code >= _HOST_CODES else FaultError
        return super().__new__(cls, code, name, message, remedy)

    def __init__(self, code=0, name="", message="", remedy=""):
        super().__init__(code, name, message, remedy)
        self.code = code
        self.name = name
        self.message = message
        self.remedy = remedy

    def __str__(self):
        # A post-mortem begins with the name and ends with the remedy.
        text = self.message if self.name in self.message else f"{self.name}: {self.message}"
        return text if self.remedy in text else f"{text}\nWhat to do: {self.remedy}"


class FaultError(PtoError):
    """A run, or the graph of it, failed; the message is the post-mortem. The device can be used again."""


class HostError(PtoError):
    """A call could not be done."""


class ConfigError(Exception):
    """kernel_config.py or golden.py is missing or malformed; says which key, and where."""


class CompileError(Exception):
    """A source does not compile; has the compiler's output."""


class MismatchError(AssertionError):
    """Results differ from the golden ones; says how many, by how much, and where."""
