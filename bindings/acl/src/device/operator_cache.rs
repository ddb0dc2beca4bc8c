//! Single operators that are built: each for certain types, extents and attributes, on one device.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::model::LoadedModel;

/// Operators that are kept, at most.
const MOST_KEPT: usize = 512;

/// What is built, by the device and everything that the build depends on.
static BUILT: Mutex<BTreeMap<OperatorKey, Arc<LoadedModel>>> = Mutex::new(BTreeMap::new());

/// A device, and everything that a build depends on, as text.
pub(super) type OperatorKey = (i32, String);

/// The operator with this key.
pub(super) fn find(key: &OperatorKey) -> Option<Arc<LoadedModel>> {
    built().get(key).cloned()
}

/// Keeps an operator. Where there are too many, all others go; runs that were submitted keep theirs.
pub(super) fn keep(key: OperatorKey, operator: &Arc<LoadedModel>) {
    let mut built = built();
    if built.len() >= MOST_KEPT {
        built.clear();
    }
    built.insert(key, Arc::clone(operator));
}

/// Forgets what was built for a device that is reset.
pub(super) fn forget_all(device: i32) {
    built().retain(|(of, _), _| *of != device);
}

fn built() -> MutexGuard<'static, BTreeMap<OperatorKey, Arc<LoadedModel>>> {
    BUILT.lock().unwrap_or_else(PoisonError::into_inner)
}
