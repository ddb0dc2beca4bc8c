//! Closed sets, faults by their codes, and how many chunks edges need.

use pto_abi::fault::TABLE;
use pto_abi::kinds::TaskState;
use pto_abi::task::chunks_for;
use pto_abi::{BuildMode, CoreKind, FanoutStrategy, Fault, RuntimeVariant};

/// Values and names are those of the set, both ways, and nothing else is.
macro_rules! check_set {
    ($set:ident, $repr:ty) => {
        for member in $set::ALL {
            assert_eq!($set::try_from(member.get()), Ok(*member));
            assert_eq!($set::from_name(member.name()), Some(*member));
            assert_eq!(format!("{member} {member:?}"), format!("{0} {0}", member.name()));
        }
        let members = $set::ALL.iter().map(|member| member.get()).collect::<Vec<_>>();
        for value in (0..200).chain([<$repr>::MAX]) {
            let result = $set::try_from(value);
            assert_eq!(result.is_ok(), members.contains(&value));
            if let Err(unknown) = result {
                assert_eq!((unknown.set, unknown.value), (stringify!($set), u32::from(value)));
                assert!(unknown.to_string().contains(stringify!($set)));
            }
        }
        assert_eq!($set::from_name("?"), None);
    };
}

#[test]
fn sets_are_closed() {
    check_set!(CoreKind, u8);
    check_set!(TaskState, u8);
    check_set!(RuntimeVariant, u32);
    check_set!(BuildMode, u32);
    check_set!(FanoutStrategy, u32);
}

#[test]
fn faults_are_found_by_their_codes() {
    for entry in TABLE {
        let fault = Fault::from_code(entry.fault.code()).unwrap();
        assert_eq!(fault.entry().map(|found| found.name), Some(entry.name));
        assert!(
            fault.to_string().contains(entry.sentence) && fault.to_string().contains(entry.name)
        );
    }
}

/// Edges wherever they go: of one producer or of many, the chunks suffice.
#[test]
fn chunks_suffice() {
    let needed = |consumers: u64| consumers.saturating_sub(5).div_ceil(15);
    for edges in 0..400 {
        for each in 1..=60.min(edges) {
            let (full, rest) = (edges / each, edges % each);
            let chunks = full * needed(each) + needed(rest);
            assert!(chunks <= chunks_for(edges), "{edges} edges, {each} from each producer");
        }
    }
}
