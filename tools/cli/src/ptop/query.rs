//! `pto program query`: describes the system here, for `pto program check` elsewhere.

use super::system::System;
use crate::args::QueryArgs;
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::output::answer;
use crate::output_file;
use crate::text::{bytes, table};

/// Shows the description, or writes it.
pub(super) fn query(args: &QueryArgs) -> Result<Exit, Failure> {
    let system = System::here();
    let json = serde_json::to_value(&system).map_err(Failure::internal)?;
    if let Some(path) = &args.output {
        output_file::check_form(path, "json")?;
        let text = format!("{json:#}\n");
        output_file::write(path, |to| std::io::Write::write_all(to, text.as_bytes()))?;
    }
    let as_text = || {
        let rows = [
            ("target", system.target.clone()),
            ("cores", format!("{} AIC, {} AIV", system.aic, system.aiv)),
            ("device memory", bytes(system.gm_bytes)),
            ("interface to the device", system.abi_major.to_string()),
            ("program files", system.program_version.clone()),
            ("plans", system.plan_version.to_string()),
            ("native kernels", system.processor.clone()),
            ("kernels of the library", system.kernels.len().to_string()),
            ("builders", system.builders.len().to_string()),
        ];
        table(&rows.map(|(name, value)| vec![name.to_owned(), value]), &[])
    };
    answer(Form::from(args.json), Exit::Pass, as_text, || json)
}
