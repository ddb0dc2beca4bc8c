//! What a library of operators above this one calls: `pto_acl.h`.

use std::ffi::c_char;

use pto_acl_interface::above::{OperandBytes, OperatorLaunch};

use super::launch::{check_blocks, looked_up};
use crate::common::argument::In;
use crate::common::entry::api;
use crate::common::notes::Pointee;
use crate::common::order::{MemoryUse, Touch};
use crate::common::refusal::{Refusal, require};
use crate::common::table::Handle;
use crate::common::thread;
use crate::device::operator::{Context, Launch};
use crate::device::parameters::MAX_PARAMETERS;
use crate::device::{current, operator};

/// Memory that one operator uses at most in so many pieces.
const MOST_OPERANDS: usize = 4096;

impl Pointee for OperandBytes {}

impl Pointee for OperatorLaunch {}

api! {
    fn ptoAclLaunchOperator(launch: In<OperatorLaunch>, stream: Handle) {
        let asked = launch
            .optional()
            .ok_or_else(|| Refusal::argument("launch is null; pass what is launched"))?;
        let context = Context::new(asked.context.expose_provenance(), asked.release);
        let function = looked_up(asked.function)?;
        check_blocks(asked.blocks)?;
        require(asked.word_count <= MAX_PARAMETERS && asked.operand_count <= MOST_OPERANDS, || {
            Refusal::value(format!(
                "{} words and {} operands; {MAX_PARAMETERS} and {MOST_OPERANDS} are the most",
                asked.word_count, asked.operand_count
            ))
        })?;
        let words = In::<u64>::at(asked.words.expose_provenance()).list("words", asked.word_count)?;
        let operands = In::<OperandBytes>::at(asked.operands.expose_provenance()).list("operands", asked.operand_count)?;
        let touches = operands.iter().map(|operand| {
            let how = if operand.writes == 0 { MemoryUse::Reads } else { MemoryUse::Writes };
            Touch::new(how, operand.address, operand.bytes)
        });
        let own = thread::own();
        let stream = current::submitting_from(&own, stream)?;
        let launch = Launch { function, blocks: asked.blocks, words, outcome: asked.outcome, context };
        operator::launch(&own, &stream, launch, touches.collect())
    }
}

/// A library above this one reports a call of its own that it refuses; `call` stays as long as the process.
// SAFETY: the name is one of ours, and no other function here has the same name.
#[unsafe(no_mangle)]
extern "C" fn ptoAclReport(call: *const c_char, code: i32, text: *const c_char) -> i32 {
    super::runtime::report(call, code, text)
}
