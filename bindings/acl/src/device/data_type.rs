//! Element types of operators, and `aclDataType`.

use pto_host::workloads::tile;
use pto_operators::DType;

/// The numbers of the interface.
const NUMBERS: [(DType, i32); 13] = [
    (DType::F32, 0),
    (DType::F16, 1),
    (DType::I8, 2),
    (DType::I32, 3),
    (DType::U8, 4),
    (DType::I16, 6),
    (DType::U16, 7),
    (DType::U32, 8),
    (DType::I64, 9),
    (DType::U64, 10),
    (DType::F64, 11),
    (DType::Bool, 12),
    (DType::BF16, 27),
];

/// The number of the interface.
pub(crate) fn number(dtype: DType) -> i32 {
    NUMBERS.iter().find(|(known, _)| *known == dtype).map_or(-1, |(_, number)| *number)
}

/// The type with this number; `None`: operators do not take it.
pub(crate) fn of(number: i32) -> Option<DType> {
    NUMBERS.iter().find(|(_, known)| *known == number).map(|(dtype, _)| *dtype)
}

/// The type of a tensor of a program file.
pub(crate) fn of_stored(stored: tile::DType) -> DType {
    let found = NUMBERS.iter().find(|(known, _)| *known != DType::Bool && known.stored() == stored);
    found.map_or(DType::U8, |(dtype, _)| *dtype)
}
