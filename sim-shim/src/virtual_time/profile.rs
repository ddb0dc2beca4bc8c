//! Hardware profiles: what each operation of the device costs, read from data files.
//!
//! A file is a list of `key = number` or `key = [low, high]` under `[section]`; what is under
//! `[unknown.section]` is a guess and is named as one by [`Profile::unknowns`]. Every key must be there once: a
//! missing, doubled or misspelt one is an error with its line.

use std::fmt;
use std::sync::OnceLock;

use pto_aicore_kernels::cost::OnChip;

/// The longest time of an operation: a thousand times what any takes on a device. A run takes as long as its virtual time
/// has events, so that one with operations of hours would not end.
const LONGEST_NS: u64 = 10_000_000;

/// A cost in nanoseconds, drawn uniformly from `low ..= high`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostRange {
    /// At least.
    pub low: u64,
    /// At most.
    pub high: u64,
}

impl CostRange {
    /// The mean, rounded down.
    #[must_use]
    pub const fn mean(self) -> u64 {
        self.low.midpoint(self.high)
    }
}

macro_rules! profile {
    ($( $section:literal { $( $(#[$meta:meta])* $field:ident ),+ $(,)? } )+) => {
        /// What a machine consists of and what its operations cost; times in nanoseconds.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Profile {
            /// The profile's name.
            pub name: String,
            /// Keys whose values are guesses, as `section.key`.
            pub unknowns: Vec<String>,
            $($( $(#[$meta])* pub $field: CostRange, )+)+
        }

        /// The keys of a profile, by section.
        const KEYS: &[(&str, &str)] = &[$($( ($section, stringify!($field)), )+)+];

        impl Profile {
            fn field(&mut self, section: &str, key: &str) -> Option<&mut CostRange> {
                match (section, key) {
                    $($( ($section, stringify!($field)) => Some(&mut self.$field), )+)+
                    _ => None,
                }
            }
        }
    };
}

profile! {
    "die" {
        /// Cube cores of the device.
        aic,
        /// Vector cores of the device.
        aiv,
        /// AICPU instances that a run uses.
        aicpu,
    }
    "aicpu" {
        /// A posted store to a control register, the first of a burst.
        store_first_ns,
        /// A further store of a burst.
        store_burst_ns,
        /// A load of a core's status; loads of one instance never overlap.
        cond_load_ns,
        /// An access to a GM line that is in the cache.
        line_hit_ns,
        /// An access to a GM line that another agent has written.
        line_miss_ns,
        /// The resolution of the clock.
        clock_tick_ns,
        /// A turn of a scheduler, without what follows.
        step_ns,
        /// Closing the fanout of a finished task.
        complete_ns,
        /// Releasing one consumer.
        release_ns,
        /// Deciding on one dispatch and writing it.
        dispatch_ns,
        /// Ringing what was staged ahead, without the barrier and the store.
        ring_ns,
        /// The barrier of a commit.
        barrier_ns,
        /// Adding a task.
        add_ns,
        /// What a task or a chain takes in a streaming run in addition to that: room in the rings, and an entry of the window.
        stream_ns,
        /// One argument word of a task.
        argument_ns,
        /// Adding a chain, in addition to what a task takes and without its links.
        chain_ns,
        /// One link of a chain: its checks, its kernel.
        chain_link_ns,
        /// One word of a chain.
        chain_word_ns,
        /// Making a template of a chain, without its links and words.
        template_ns,
        /// Adding the chain of a template, in addition to what a task takes and without its words.
        from_template_ns,
        /// A part of a tensor that a link of a chain reads or writes, and that is not one run of bytes: its views, their checks, the derivation of edges from it.
        chain_tensor_ns,
        /// A part of a tensor that a link of a chain reads or writes, and that is one run of bytes.
        chain_part_ns,
        /// A tensor that a task reads or writes: its view, its check, the derivation of edges from it.
        tensor_ns,
        /// Adding an edge.
        edge_ns,
        /// Publishing a task.
        publish_ns,
        /// Submitting a range, without its tasks.
        range_ns,
        /// Adding and publishing a task of a range, without its arguments.
        range_task_ns,
        /// Putting a task of a range that waits for nothing into the queue of what is ready.
        range_ready_ns,
        /// Adding an edge of a task of a range.
        range_edge_ns,
        /// A tensor that a task of a range reads or writes: the derivation of edges from it.
        range_tensor_ns,
    }
    "signal" {
        /// From the doorbell's store until the core sees it.
        doorbell_ns,
        /// From the core's report until the scheduler sees it.
        finish_visible_ns,
    }
    "core" {
        /// Between two kernels on a core; includes the next two.
        switch_ns,
        /// Writing the results' lines back.
        flush_ns,
        /// Reporting.
        set_cond_ns,
        /// Between two kernels of a chain.
        link_ns,
    }
    "copy" {
        /// A copy of a session, before its first byte moves.
        start_ns,
        /// 1 MiB between host and device.
        host_mib_ns,
        /// 1 MiB on the device, read and written.
        device_mib_ns,
    }
    "on_chip" {
        /// A transfer between a core and the fast region of the device, before its first byte moves.
        on_chip_start_ns,
        /// 1 MiB between a core and the fast region.
        on_chip_mib_ns,
    }
}

/// Why a profile cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    /// Line of the file, from 1 on; 0: the file as a whole.
    pub line: usize,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "profile, line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ProfileError {}

impl Profile {
    /// What a transfer between a core and the fast region takes, in the mean.
    #[must_use]
    pub const fn on_chip(&self) -> OnChip {
        OnChip { start_ns: self.on_chip_start_ns.mean(), mib_ns: self.on_chip_mib_ns.mean() }
    }

    /// The names of the profiles that come with the machine.
    pub const NAMES: &'static [&'static str] = &["a2a3", "a5", "ideal"];

    /// The Ascend a2a3, one die.
    #[must_use]
    pub fn a2a3() -> &'static Self {
        static PROFILE: OnceLock<Profile> = OnceLock::new();
        PROFILE.get_or_init(|| built_in(include_str!("../../profiles/a2a3.toml")))
    }

    /// The Ascend a5, two dies.
    #[must_use]
    pub fn a5() -> &'static Self {
        static PROFILE: OnceLock<Profile> = OnceLock::new();
        PROFILE.get_or_init(|| built_in(include_str!("../../profiles/a5.toml")))
    }

    /// Everything but kernels is free.
    #[must_use]
    pub fn ideal() -> &'static Self {
        static PROFILE: OnceLock<Profile> = OnceLock::new();
        PROFILE.get_or_init(|| built_in(include_str!("../../profiles/ideal.toml")))
    }

    /// The profile of this name, one of [`NAMES`](Self::NAMES).
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        match name {
            "a2a3" => Some(Self::a2a3()),
            "a5" => Some(Self::a5()),
            "ideal" => Some(Self::ideal()),
            _ => None,
        }
    }

    /// Reads a profile; it stays for the rest of the process, so read each file once.
    ///
    /// # Errors
    /// The first line that is wrong, or the keys that are missing.
    pub fn load(text: &str) -> Result<&'static Self, ProfileError> {
        Self::parse(text).map(|profile| &*Box::leak(Box::new(profile)))
    }

    /// Reads a profile.
    ///
    /// # Errors
    /// The first line that is wrong, or the keys that are missing.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let mut reader =
            ProfileParser { profile: Self::default(), section: String::new(), seen: vec![] };
        // Some editors write a byte order mark before the text.
        for (number, line) in (1..).zip(text.trim_start_matches('\u{FEFF}').lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                reader.line(line).map_err(|message| ProfileError { line: number, message })?;
            }
        }
        reader.finish()
    }

    /// Values that are guesses, as `section.key`.
    #[must_use]
    pub fn unknowns(&self) -> &[String] {
        &self.unknowns
    }

    /// What a core needs before a kernel: its switch without what it does after the kernel before.
    #[must_use]
    pub const fn core_start_ns(&self) -> u64 {
        self.switch_ns.mean().saturating_sub(self.flush_ns.mean() + self.set_cond_ns.mean())
    }
}

#[expect(clippy::panic, reason = "the files are part of the program, and a test reads each")]
fn built_in(text: &str) -> Profile {
    Profile::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

struct ProfileParser {
    profile: Profile,
    section: String,
    seen: Vec<String>,
}

impl ProfileParser {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            self.section = section.trim().to_owned();
            return Ok(());
        }
        let (key, value) = line.split_once('=').ok_or("expected 'key = value' or '[section]'")?;
        let (key, value) = (key.trim(), value.trim());
        if key == "name" && self.section.is_empty() {
            self.profile.name = value.trim_matches('"').to_owned();
            return Ok(());
        }
        let span = parse_span(value)?;
        let (section, is_guess) = match self.section.strip_prefix("unknown.") {
            Some(section) => (section.to_owned(), true),
            None => (self.section.clone(), false),
        };
        let full = format!("{section}.{key}");
        if key.ends_with("_ns") && span.high > LONGEST_NS {
            let (found, longest) = (span.high, LONGEST_NS);
            return Err(format!("'{full}' is {found} ns; a time is at most {longest} ns"));
        }
        let field = self.profile.field(&section, key);
        *field.ok_or_else(|| unknown_key(&section, key))? = span;
        if self.seen.contains(&full) {
            return Err(format!("'{full}' is given twice; keep one"));
        }
        if is_guess {
            self.profile.unknowns.push(full.clone());
        }
        self.seen.push(full);
        Ok(())
    }

    fn finish(self) -> Result<Profile, ProfileError> {
        let full = KEYS.iter().map(|(section, key)| format!("{section}.{key}"));
        let missing: Vec<_> = full.filter(|key| !self.seen.contains(key)).collect();
        let whole = |message| ProfileError { line: 0, message };
        if self.profile.name.is_empty() {
            return Err(whole("there is no 'name = \"..\"'; add it at the top".to_owned()));
        }
        if !missing.is_empty() {
            return Err(whole(format!(
                "missing: {}; add them, or begin with a copy of sim-shim/profiles/a2a3.toml",
                missing.join(", ")
            )));
        }
        Ok(self.profile)
    }
}

/// What to do about a key that its section does not have.
fn unknown_key(section: &str, key: &str) -> String {
    match KEYS.iter().find(|(_, known)| *known == key) {
        Some((home, _)) => format!("'{key}' belongs in the section [{home}]; put it there"),
        None if section.is_empty() => format!("unknown key '{key}'; remove it"),
        None => format!("unknown key '{section}.{key}'; remove it"),
    }
}

fn parse_span(text: &str) -> Result<CostRange, String> {
    let number = |text: &str| {
        let text = text.trim();
        text.parse::<u64>().map_err(|_| format!("'{text}' is not a whole number of nanoseconds"))
    };
    let Some(pair) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return number(text).map(|value| CostRange { low: value, high: value });
    };
    let (low, high) = pair.split_once(',').ok_or("expected '[low, high]'")?;
    let span = CostRange { low: number(low)?, high: number(high)? };
    if span.low > span.high {
        return Err(format!(
            "the range [{}, {}] ends before it begins; exchange the two values",
            span.low, span.high
        ));
    }
    Ok(span)
}

#[cfg(test)]
mod tests {
    use super::{CostRange, Profile};

    #[test]
    fn the_built_in_profiles_read_and_name_their_guesses() {
        for name in Profile::NAMES {
            assert_eq!(Profile::by_name(name).unwrap().name, *name);
        }
        let profile = Profile::a2a3();
        assert_eq!(profile.cond_load_ns, CostRange { low: 95, high: 105 });
        assert_eq!(profile.finish_visible_ns.mean(), 600, "the published mean");
        assert_eq!(profile.core_start_ns(), 800 - 225 - 7);
        assert!(profile.unknowns().contains(&"aicpu.complete_ns".to_owned()));
        assert!(!profile.unknowns().contains(&"signal.doorbell_ns".to_owned()));
        assert!(Profile::a5().unknowns().len() > 15 && Profile::ideal().unknowns().is_empty());
    }

    #[test]
    fn a_wrong_file_is_refused_with_its_line() {
        let error = |text: &str| Profile::parse(text).unwrap_err();
        assert_eq!(error("name = \"x\"\n[aicpu]\nnonsense = 3").line, 3);
        assert_eq!(error("name = \"x\"\n[die]\naic = 3\naic = 4").line, 4);
        assert_eq!(error("[die]\naic = 3 ns").line, 2);
        assert_eq!(error("[aicpu]\ncond_load_ns = [5, 4]").line, 2);
        assert_eq!(error("[aicpu").line, 1);
        assert_eq!(
            error("\u{FEFF}name = \"x\"\n[die]\naic = 3 ns").line,
            3,
            "after a byte order mark"
        );
        let stray = error("name = \"x\"\ndoorbell_ns = [140, 105000]");
        assert_eq!(stray.message, "'doorbell_ns' belongs in the section [signal]; put it there");
        assert_eq!(error("[die]\ndoorbell_ns = 1").message, stray.message);
        assert_eq!(error("stray = 1").message, "unknown key 'stray'; remove it");
        for endless in ["9223372036854775807", "[0, 10000001]"] {
            let endless = error(&format!("[aicpu]\ndispatch_ns = {endless}"));
            let is_named = endless.message.contains("'aicpu.dispatch_ns' is");
            assert!(
                endless.line == 2 && is_named && endless.message.contains("at most 10000000 ns"),
                "{endless}"
            );
        }
        let missing = error("name = \"x\"");
        assert!(missing.line == 0 && missing.message.contains("signal.doorbell_ns"));
        assert!(error("").message.contains("name"));
    }
}
