//! A program may give up with an error code of its own. This file adds the meaning of the code, as the example states it, to the
//! error.

use pto_abi::Fault;
use pto_examples::host::Example;
use pto_graph::BuildError;

use crate::errors::Failure;

/// A failure of a run; where the program gave up with a code of its own, with what the code means.
pub(crate) fn with_meaning(example: &dyn Example, error: pto_host::Error) -> Failure {
    let code = match &error {
        pto_host::Error::Fault { fault: Fault::BUILD_FAILED, report } => {
            report.epitaph.as_ref().and_then(|epitaph| i32::try_from(epitaph.detail[0]).ok())
        }
        _ => None,
    };
    let meaning = code.and_then(|code| example.failure(code));
    let failure = Failure::from(error);
    match meaning {
        Some(meaning) => failure.and(format!("{}: {meaning}", example.name())),
        None => failure,
    }
}

/// A failure of a build that was recorded and not run.
pub(crate) fn gave_up(example: &dyn Example, error: BuildError) -> Failure {
    let (fault, what) = match error {
        BuildError::Fault(fault) => (fault, "while it was recorded".to_owned()),
        BuildError::Failed(code) => (Fault::BUILD_FAILED, format!("its own code is {code}")),
    };
    let meaning = match error {
        BuildError::Failed(code) => example.failure(code),
        BuildError::Fault(_) => None,
    };
    let failure = Failure::from(pto_host::Error::Build { fault, what });
    match meaning {
        Some(meaning) => failure.and(format!("{}: {meaning}", example.name())),
        None => failure,
    }
}
