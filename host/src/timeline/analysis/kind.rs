//! The name of a core kind in JSON.

use pto_abi::CoreKind;
use serde::Serializer;

pub(super) fn kind_name<S: Serializer>(kind: &CoreKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}
