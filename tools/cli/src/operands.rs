//! What the kernels of the library do with the memory that their words point to: the roles and extents of the kernels' table, for
//! words of a recorded task.

use pto_aicore_kernels::attention;
use pto_check::{Access, Extents, Operand};

macro_rules! access {
    (In) => {
        Some(Access::Read)
    };
    (Out) => {
        Some(Access::Write)
    };
    (InOut) => {
        Some(Access::Both)
    };
    ($number:ident) => {
        None
    };
}

macro_rules! extents {
    () => {
        None
    };
    ([$rows:expr, $cols:expr; $ld:expr]) => {
        Some(Extents::Matrix([$rows, $cols, $ld]))
    };
    ([$n:expr]) => {
        Some(Extents::Vector($n))
    };
}

/// One arm for each row of the table.
macro_rules! operands {
    ($(
        $id:literal $constant:ident $name:ident $kind:ident $summary:literal
        ($($arg:ident: $role:ident $([$($extent:tt)*])?),* $(; $context:ident)? $(| $words:ident)?) => { $($body:tt)* };
    )*) => {
        /// The arguments of a kernel that are addresses; `None`: the library has no such kernel, or it takes another number of
        /// words.
        pub(crate) fn operands(func: u16, words: &[u64]) -> Option<Vec<Operand>> {
            match func {
                $($id => {
                    let &[$($arg),*] = words else { return None };
                    // Extents are expressions over some of the words.
                    let _ = ($($arg,)*);
                    let all: &[(Option<Access>, Option<Extents>)] =
                        &[$((access!($role), extents!($([$($extent)*])?))),*];
                    Some(addresses(all))
                })*
                _ => None,
            }
        }
    };
}

pto_aicore_kernels::kernels! { [operands] }

fn addresses(all: &[(Option<Access>, Option<Extents>)]) -> Vec<Operand> {
    let numbered = all.iter().enumerate();
    numbered
        .filter_map(|(arg, (access, extents))| {
            Some(Operand { arg, access: (*access)?, extents: *extents })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::operands;
    use pto_check::{Access, Extents, Operand};

    #[test]
    fn roles_and_extents_are_those_of_the_table() {
        // matmul: c [2, 3] = a [2, 4] @ b [4, 3].
        let words = [0x1000, 0x2000, 0x3000, 2, 3, 4, 10, 11, 12];
        let matrix =
            |arg, access, extents| Operand { arg, access, extents: Some(Extents::Matrix(extents)) };
        assert_eq!(
            operands(6, &words).unwrap(),
            [
                matrix(0, Access::Read, [2, 4, 10]),
                matrix(1, Access::Read, [4, 3, 11]),
                matrix(2, Access::Write, [2, 3, 12]),
            ]
        );
        assert_eq!(operands(6, &words[1..]), None);
        assert_eq!(operands(999, &words), None);
        assert_eq!(operands(13, &[]), Some(Vec::new()));
    }
}
