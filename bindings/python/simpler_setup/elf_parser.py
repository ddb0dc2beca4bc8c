"""The machine code of an object file. Programs ask for it on devices; on simulators they keep the whole object."""

import struct

_SECTION = struct.Struct("<IIQQQQIIQQ")


def extract_text_section(binary):
    """The bytes of section `.text` of a 64-bit ELF file."""
    if binary[:4] != b"\x7fELF" or binary[4] != 2:
        raise ValueError("this is no 64-bit ELF file")
    table, size, count, names_index = *struct.unpack_from("<Q", binary, 0x28), *struct.unpack_from("<HHH", binary, 0x3A)
    sections = [_SECTION.unpack_from(binary, table + size * index) for index in range(count)]
    names = sections[names_index]
    for section in sections:
        start = names[4] + section[0]
        if binary[start : binary.index(b"\0", start)] == b".text":
            return bytes(binary[section[4] : section[4] + section[5]])
    raise ValueError("the file has no section .text")
