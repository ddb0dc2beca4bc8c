//! The functions of the interface, and further functions of the library.

/// Columns: tier, header, result, name, parameters.
const TABLE: &str = include_str!("../functions.tsv");
const RESULT: usize = 2;
const NAME: usize = 3;

/// Functions of `pto_acl.h`.
const OWN: &[&str] = &[
    "ptoAclGraphBegin",
    "ptoAclGraphBuild",
    "ptoAclGraphDestroy",
    "ptoAclGraphParse",
    "ptoAclGraphSave",
    "ptoAclKernelCostWord",
    "ptoAclKernelFromFunction",
    "ptoAclKernelParameters",
    "ptoAclLaunch",
    "ptoAclLaunchException",
    "ptoAclModelBind",
    "ptoAclModelRuns",
    "ptoAclLaunchOperator",
    "ptoAclReport",
];

/// Functions `rt*` of `libruntime.so` that the library has in addition to those of the table.
const RUNTIME: &[&str] = &[
    "rtSetDevice",
    "rtEventDestroy",
    "rtsBinaryLoadFromFile",
    "rtsFuncGetByName",
    "rtsLaunchCpuKernel",
    "rtRegisterAllKernel",
    "rtKernelLaunchWithHandleV2",
    "rtGetC2cCtrlAddr",
    "rtAicpuKernelLaunchExWithArgs",
];

/// The version of the table of functions between the library of entry points and a plug-in.
pub const PLUGIN_VERSION: u32 = 5;

/// Functions that have no way to say that they failed, and why.
const NEVER_FAIL: &[(&str, &str)] = &[
    ("aclFloat16ToFloat", "it converts a number, and every result is one"),
    ("aclFloatToFloat16", "it converts a number, and every result is one"),
    ("aclGetRecentErrMsg", "it returns the errors of other calls"),
    ("aclrtPeekAtLastError", "it returns the errors of other calls"),
    ("aclrtGetLastError", "it returns the errors of other calls"),
    ("aclAppLog", "it returns nothing, and writes a line of the program"),
    ("ptoAclReport", "it keeps the error of a library above this one"),
];

/// How alike two names must be (0 to 1) for one to be suggested for the other.
const ALIKE: f64 = 0.85;
/// Names that are suggested, at most.
const MOST_NAMES: usize = 3;

/// A function of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AclFunction {
    /// Its name.
    pub name: &'static str,
    /// Whether it returns an error code; other functions give a pointer or a number that reports a failure, or nothing.
    pub has_code: bool,
}

/// Every function of the library.
pub fn all() -> impl Iterator<Item = AclFunction> {
    let rows = TABLE.lines().skip(1).filter_map(|row| {
        let cells: Vec<&str> = row.split('\t').collect();
        let (name, result) = (cells.get(NAME)?, cells.get(RESULT)?);
        Some(AclFunction { name, has_code: *result == "aclError" })
    });
    rows.chain(OWN.iter().map(|name| AclFunction { name, has_code: true }))
}

/// The functions of `libruntime.so` that the library has.
pub fn runtime() -> impl Iterator<Item = AclFunction> {
    RUNTIME.iter().map(|name| AclFunction { name, has_code: true })
}

impl AclFunction {
    /// The function with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        all().chain(runtime()).find(|function| function.name == name)
    }

    /// Why it cannot fail; `None`: it can.
    #[must_use]
    pub fn why_it_never_fails(self) -> Option<&'static str> {
        NEVER_FAIL.iter().find(|(name, _)| *name == self.name).map(|(_, why)| *why)
    }
}

/// A sentence on the names that are nearest to one that is unknown.
pub(crate) fn nearest(unknown: &str, names: impl Iterator<Item = &'static str>) -> String {
    let likeness = |name: &str| strsim::jaro(&unknown.to_lowercase(), &name.to_lowercase());
    let mut near: Vec<(f64, &str)> = names.map(|name| (likeness(name), name)).collect();
    near.retain(|(likeness, _)| *likeness >= ALIKE);
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.truncate(MOST_NAMES);
    let near: Vec<&str> = near.into_iter().map(|(_, name)| name).collect();
    if near.is_empty() {
        "docs/reference/acl-functions.md lists the functions, and docs/how-to/acl.md the faults"
            .to_owned()
    } else {
        format!("the nearest names are {}", near.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::{NEVER_FAIL, OWN, all, nearest};

    #[test]
    fn the_table_has_every_name_once() {
        let mut names: Vec<&str> = all().map(|function| function.name).collect();
        assert_eq!(names.len(), 404 + 36 + 17 + 36 + OWN.len());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 404 + 36 + 17 + 36 + OWN.len());
        assert!(NEVER_FAIL.iter().all(|(name, _)| names.contains(name)));
    }

    #[test]
    fn near_names_are_listed_nearest_first() {
        let names = || ["aclrtMalloc", "aclrtMallocHost", "aclrtFree", "aclmdlLoad"].into_iter();
        assert_eq!(
            nearest("aclrtMaloc", names()),
            "the nearest names are aclrtMalloc, aclrtMallocHost"
        );
        assert!(nearest("q", names()).contains("docs/reference/acl-functions.md"));
    }
}
