//! Functions of ours, for programs that have their kernels in themselves, as those that a compiler of kernels makes: `pto_acl.h`.

use super::launch::{checked, launch};
use crate::common::argument::{Address, In, Out, Text};
use crate::common::codes;
use crate::common::entry::api;
use crate::common::refusal::{Refusal, require};
use crate::common::table::Handle;
use crate::device::kernel::{self, TargetCores};
use crate::device::launches::Passed;
use crate::device::parameters::{MAX_PARAMETERS, Parameters};
use crate::device::{current, host_functions};

/// So many first words of a launch may say what it costs.
const COST_WORDS: usize = 12;

api! {
    fn ptoAclKernelFromFunction(name: Text, entry: Address, cores: u32, function: Out<Handle>) {
        let output = function.required("function")?;
        let name = name.read("name")?;
        let entry = entry.required("entry")?;
        let kind = match cores {
            0 => TargetCores::Cube,
            1 => TargetCores::Vector,
            _ => return Err(Refusal::argument(format!("there is no kind {cores} of cores; there are 0 (cube) and 1 (vector)"))),
        };
        output.set(kernel::of_function(&name, entry, kind)?);
        Ok(())
    }

    fn ptoAclKernelParameters(function: Handle, sizes: In<u32>, count: usize) {
        require(count <= MAX_PARAMETERS, || {
            Refusal::value(format!("{count} parameters; a kernel takes {MAX_PARAMETERS}"))
        })?;
        let sizes = sizes.list("sizes", count)?;
        let function = checked(function)?;
        let name = function.name();
        function.declaration.declare(name, Parameters::of(name, &sizes)?)
    }

    fn ptoAclKernelCostWord(function: Handle, word: usize) {
        require(word < COST_WORDS, || {
            Refusal::value(format!("word {word}; a cost is one of the first {COST_WORDS} words"))
        })?;
        checked(function)?.set_cost_word(word)
    }

    fn ptoAclLaunch(function: Handle, blocks: u32, words: In<u64>, count: usize, stream: Handle) {
        let held = words.list("words", count)?;
        require(count <= MAX_PARAMETERS, || {
            Refusal::value(format!("{count} words; a kernel takes {MAX_PARAMETERS}"))
        })?;
        launch(function, blocks, Passed::words(held), stream)
    }

    fn ptoAclLaunchException(stream: Handle, code: i32) {
        let code = if code == 0 { codes::AICORE_EXCEPTION } else { code };
        host_functions::raise(&*current::submitting(stream)?, code)
    }
}
