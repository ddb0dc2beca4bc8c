//! `pto program check`: can a program run on a system?

use pto_abi::CoreKind;
use pto_abi::runtime::ABI_MAJOR;
use pto_graph::plan::layout::VERSION as PLAN_VERSION;
use pto_host::workloads::program::{MAJOR, Program, ProgramBody};
use serde_json::json;

use super::system::System;
use crate::args::ProgramCheckArgs;
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::output::answer;
use crate::text::{bytes, table};

/// Something that was compared.
struct Finding {
    what: &'static str,
    needed: String,
    there: String,
    is_met: bool,
}

/// Compares, and says what is missing.
pub(super) fn check(args: &ProgramCheckArgs, program: &Program) -> Result<Exit, Failure> {
    let system = args.system.as_deref().map_or_else(|| Ok(System::here()), System::read)?;
    let findings = findings(program, &system);
    let exit = match findings.iter().all(|finding| finding.is_met) {
        true => Exit::Pass,
        false => Exit::Wrong,
    };
    let as_text = || {
        let row = |finding: &Finding| {
            let Finding { what, needed, there, is_met } = finding;
            let verdict = if *is_met { "yes" } else { "NO" };
            vec![(*what).to_owned(), verdict.to_owned(), format!("needs {needed}; has {there}")]
        };
        let verdict = if exit == Exit::Pass { "can run" } else { "cannot run" };
        let rows: Vec<_> = findings.iter().map(row).collect();
        format!("{}program {} {verdict} on {}\n", table(&rows, &[]), program.name(), system.target)
    };
    let as_json = || {
        let one = |finding: &Finding| {
            let Finding { what, needed, there, is_met } = finding;
            json!({ "what": what, "needed": needed, "there": there, "is_met": is_met })
        };
        json!({
            "program": program.name(),
            "target": system.target,
            "can_run": exit == Exit::Pass,
            "findings": findings.iter().map(one).collect::<Vec<_>>(),
        })
    };
    answer(Form::from(args.json), exit, as_text, as_json)
}

fn findings(program: &Program, system: &System) -> Vec<Finding> {
    let needs = program.needs();
    let (target, plan) = (program.target(), matches!(program.body(), ProgramBody::Plan(_)));
    let missing: Vec<_> =
        needs.kernels.iter().filter(|name| !system.kernels.contains(name)).cloned().collect();
    let kinds: Vec<_> = needs.kinds.iter().map(ToString::to_string).collect();
    let has =
        |kind: &CoreKind| if *kind == CoreKind::AIC { system.aic > 0 } else { system.aiv > 0 };
    let memory = needs.tensor_bytes.saturating_add(needs.code_bytes);
    let [major, found] =
        [&MAJOR.to_string(), system.program_version.split('.').next().unwrap_or("")];
    let mut all = vec![
        Finding {
            what: "target",
            needed: target.to_owned(),
            there: system.target.clone(),
            is_met: system.has_target(target),
        },
        Finding {
            what: "program files",
            needed: format!("version {major}"),
            there: format!("version {}", system.program_version),
            is_met: major == found,
        },
        Finding {
            what: "interface to the device",
            needed: format!("version {ABI_MAJOR}"),
            there: format!("version {}", system.abi_major),
            is_met: ABI_MAJOR == system.abi_major,
        },
        Finding {
            what: "cores",
            needed: kinds.join(" and "),
            there: format!("{} AIC, {} AIV", system.aic, system.aiv),
            is_met: needs.kinds.iter().all(has),
        },
        Finding {
            what: "device memory",
            needed: bytes(memory),
            there: bytes(system.gm_bytes),
            is_met: memory <= system.gm_bytes,
        },
        Finding {
            what: "kernels of the library",
            needed: if needs.kernels.is_empty() {
                "none".to_owned()
            } else {
                needs.kernels.join(", ")
            },
            there: match missing.as_slice() {
                [] => "all of them".to_owned(),
                missing => format!("all but {}", missing.join(", ")),
            },
            is_met: missing.is_empty(),
        },
    ];
    if !needs.processors.is_empty() {
        all.push(Finding {
            what: "native kernels",
            needed: needs.processors.join(" or "),
            there: system.processor.clone(),
            is_met: needs.processors.contains(&system.processor),
        });
    }
    if let Some(builder) = needs.builder {
        let is_met = system.builders.contains(&builder);
        all.push(Finding {
            what: "builder",
            there: if is_met { builder.clone() } else { system.builders.join(", ") },
            needed: builder,
            is_met,
        });
    }
    if plan {
        all.push(Finding {
            what: "plans",
            needed: format!("version {PLAN_VERSION}"),
            there: format!("version {}", system.plan_version),
            is_met: PLAN_VERSION == system.plan_version,
        });
    }
    all
}
