//! What the kernels of the library do with the memory that the words of a recorded task point to.

use pto_aicore_kernels::{LIBRARY, LibraryKernel};
use pto_check::Operand;
use pto_check::program::{Argument, Program};

/// The arguments of a kernel that are addresses; `None`: the library has no such kernel, or it takes another number of words.
pub(crate) fn operands(func: u16, words: &[u64]) -> Option<Vec<Operand>> {
    let kernel = library_kernel(func).filter(|kernel| kernel.args.len() == words.len())?;
    let operand = |arg| {
        let footprint = (kernel.footprint)(words, 1, arg)?;
        Some(Operand { arg, access: footprint.access, extents: footprint.extents })
    };
    Some((0..words.len()).filter_map(operand).collect())
}

/// The first address of a recorded program that points into no tensor that the recording knows: on tensors in other memory it would still
/// point to where it did.
pub(crate) fn lost_address(program: &Program) -> Option<String> {
    program.tasks.iter().find_map(|task| {
        task.calls().find_map(|kernel| {
            let words: Vec<u64> = kernel.args.iter().map(word).collect();
            let lost = operands(kernel.func, &words)?.into_iter().find(|operand| {
                let is_word = matches!(kernel.args.get(operand.arg), Some(Argument::Scalar(_)));
                // Of nothing, the address is not used.
                is_word && operand.extents.is_none_or(|extents| extents.bytes() != Some(0))
            })?;
            let name = library_kernel(kernel.func)?.args.get(lost.arg)?;
            Some(format!("{task}: argument {} of its kernel {}, {name}", lost.arg, kernel.number))
        })
    })
}

/// An argument that is a word.
const fn word(arg: &Argument) -> u64 {
    match arg {
        Argument::Scalar(word) => *word,
        _ => 0,
    }
}

fn library_kernel(func: u16) -> Option<&'static LibraryKernel> {
    LIBRARY.get(usize::from(func))
}

#[cfg(test)]
mod tests {
    use super::operands;
    use pto_aicore_kernels::library::{Access, Extents};
    use pto_check::Operand;

    #[test]
    fn roles_and_extents_are_those_of_the_table() {
        // matmul: c [2, 3] = a [2, 4] @ b [4, 3].
        let words = [0x1000, 0x2000, 0x3000, 2, 3, 4, 10, 11, 12];
        let matrix =
            |arg, access, extents| Operand { arg, access, extents: Some(Extents::Matrix(extents)) };
        assert_eq!(
            operands(6, &words).unwrap(),
            [
                matrix(0, Access::In, [2, 4, 10]),
                matrix(1, Access::In, [4, 3, 11]),
                matrix(2, Access::Out, [2, 3, 12]),
            ]
        );
        assert_eq!(operands(6, &words[1..]), None);
        assert_eq!(operands(999, &words), None);
        assert_eq!(operands(13, &[]), Some(Vec::new()));
    }
}
