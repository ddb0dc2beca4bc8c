//! The process that plays AICPUs and AICores: `pto-cann-emulator serve`, a program of the machine whose code the firmware is. By
//! `qemu-aarch64` where the host is another machine. It takes orders in lines, and answers each when it has ended.

use std::ffi::{CStr, c_void};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::{env, fs};

use crate::memory::{ADDRESS, BYTES, Memory, REGISTERS};

const QEMU: &str = "qemu-aarch64";
const SYSROOT: &str = "/usr/aarch64-linux-gnu";

/// Whose code an ELF file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Aarch64,
    X86_64,
}

impl Code {
    /// Where the machine is in the header of an ELF file.
    const PLACE: std::ops::Range<usize> = 18..20;
    /// Bytes of a file that tell.
    pub(crate) const HEAD: usize = 20;

    /// Of the head of a file; `None`: it is no ELF file, or of a machine that no emulator plays.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        if !head.starts_with(b"\x7fELF") {
            return None;
        }
        match u16::from_le_bytes(head.get(Self::PLACE)?.try_into().ok()?) {
            183 => Some(Self::Aarch64),
            62 => Some(Self::X86_64),
            _ => None,
        }
    }

    /// The name of its folder.
    const fn name(self) -> &'static str {
        match self {
            Self::Aarch64 => "aarch64",
            Self::X86_64 => "x86_64",
        }
    }

    /// Whether this machine runs it by itself.
    const fn is_native(self) -> bool {
        match self {
            Self::Aarch64 => cfg!(target_arch = "aarch64"),
            Self::X86_64 => cfg!(target_arch = "x86_64"),
        }
    }

    /// What runs the program of this code.
    fn command(self, program: &PathBuf) -> Result<Command, String> {
        match self {
            _ if self.is_native() => Ok(Command::new(program)),
            Self::Aarch64 => {
                let mut command = Command::new(QEMU);
                command.args(["-L", SYSROOT]).arg(program);
                Ok(command)
            }
            Self::X86_64 => Err("the firmware is x86-64 code, and this machine is another one: flash one for AArch64".to_owned()),
        }
    }
}

/// Hears that an order was answered: its number and code; `None`: no order will be answered any more.
pub(crate) type OnAnswer = fn(u64, Option<(u64, i32)>);

/// A running emulator.
pub(crate) struct Emulator {
    child: Child,
    orders: ChildStdin,
    /// Where the image installs itself.
    folder: PathBuf,
    /// Whose code it runs.
    pub(crate) code: Code,
}

impl Emulator {
    /// Starts it. `told` hears of each answer, with the generation.
    pub(crate) fn start(
        code: Code,
        memory: &Memory,
        generation: u64,
        on_answer: OnAnswer,
    ) -> Result<Self, String> {
        let folder =
            env::temp_dir().join(format!("pto-stand-in-{}-{generation}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let program = program(code)?;
        let mut command = code.command(&program)?;
        command.arg("serve").arg(memory.path());
        command.args([BYTES, ADDRESS, REGISTERS].map(|number| number.to_string())).arg(&folder);
        command.env("PTO_AICPU_KERNELS", &folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            let needs =
                if code.is_native() { "" } else { "; it needs qemu-aarch64 (Debian: qemu-user)" };
            format!("{} cannot be started ({error}){needs}", program.display())
        })?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let (Some(orders), Some(answers)) = (orders, answers) else {
            return Err("no pipes".into());
        };
        let mut answers = BufReader::new(answers);
        greet(&mut answers)?;
        std::thread::spawn(move || listen(answers, generation, on_answer));
        Ok(Self { child, orders, folder, code })
    }

    /// Puts a file into its folder.
    pub(crate) fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.folder.join(name);
        if path.is_file() {
            return Ok(());
        }
        fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Gives an order.
    pub(crate) fn order(&mut self, line: &str) -> Option<()> {
        writeln!(self.orders, "{line}").ok()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The first line: memory and registers are where the device has them.
fn greet(answers: &mut BufReader<ChildStdout>) -> Result<(), String> {
    let mut line = String::new();
    answers.read_line(&mut line).map_err(|error| error.to_string())?;
    if line == "ready\n" { Ok(()) } else { Err(format!("the emulator did not come up: {line:?}")) }
}

/// Tells what the emulator answers, until it ends.
fn listen(answers: BufReader<ChildStdout>, generation: u64, on_answer: OnAnswer) {
    for line in answers.lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["done", id, code] = *words.as_slice() else { continue };
        if let (Ok(id), Ok(code)) = (id.parse(), code.parse()) {
            on_answer(generation, Some((id, code)));
        }
    }
    on_answer(generation, None);
}

/// The emulator's file: next to the library, in `bin`.
fn program(code: Code) -> Result<PathBuf, String> {
    let home = match env::var_os("PTO_STAND_IN_HOME") {
        Some(home) => PathBuf::from(home),
        None => own_home().ok_or("the stand-in does not know where it lies")?,
    };
    let program = home.join("bin").join(code.name()).join("pto-cann-emulator");
    let missing = || format!("there is no {}: `cargo xtask stand-in` makes it", program.display());
    if program.is_file() { Ok(program) } else { Err(missing()) }
}

/// The folder above the one that this library was loaded from.
fn own_home() -> Option<PathBuf> {
    let mut found = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    let here = own_home as fn() -> Option<PathBuf> as *const c_void;
    // SAFETY: an address of this library, and memory for what is known of it.
    let known = unsafe { libc::dladdr(here, &raw mut found) };
    if known == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: not null: the path by which the library was loaded.
    let path = PathBuf::from(unsafe { CStr::from_ptr(found.dli_fname) }.to_str().ok()?);
    path.parent()?.parent().map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn the_head_of_a_file_tells_its_machine() {
        let head =
            |machine: u16| [b"\x7fELF".as_slice(), &[2; 14], &machine.to_le_bytes()].concat();
        assert_eq!(Code::of(&head(183)), Some(Code::Aarch64));
        assert_eq!(Code::of(&head(62)), Some(Code::X86_64));
        assert_eq!(Code::of(&head(243)), None);
        assert_eq!(Code::of(&head(62)[..19]), None);
        assert_eq!(Code::of(&[0; Code::HEAD]), None);
    }
}
