//! The description of a firmware: which entries there are, and in which library.

use std::collections::BTreeMap;

use serde_json::Value;

/// By the name of the operator: library and function. An error says what is wrong.
pub(crate) fn entries(text: &str) -> Result<BTreeMap<String, (String, String)>, String> {
    let described: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let operators = described.as_object().ok_or("the description is no object")?;
    operators.iter().map(|(name, one)| Ok((name.clone(), entry(name, one)?))).collect()
}

fn entry(name: &str, operator: &Value) -> Result<(String, String), String> {
    let word = |field: &str| {
        let value = operator.get("opInfo").and_then(|facts| facts.get(field));
        let value = value.and_then(Value::as_str).filter(|value| !value.is_empty());
        value.ok_or_else(|| format!("{name} has no {field}"))
    };
    let library = word("kernelSo")?;
    if word("opKernelLib")? != "AICPUKernel" {
        return Err(format!("{name}: opKernelLib is not AICPUKernel"));
    }
    if library.contains('/') {
        return Err(format!("{name}: kernelSo is a path"));
    }
    ["computeCost", "engine", "flagAsync", "flagPartial", "userDefined"]
        .iter()
        .try_for_each(|field| word(field).map(|_| ()))?;
    Ok((library.to_owned(), word("functionName")?.to_owned()))
}
