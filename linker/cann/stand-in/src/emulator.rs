//! The process that plays AICPUs and AICores: `pto-cann-emulator serve`, an AArch64 program, by `qemu-aarch64` where the
//! host is another machine. It takes orders in lines, and answers each when it has ended.

use std::ffi::{CStr, c_void};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::{env, fs};

use crate::memory::{BYTES, Memory};

const QEMU: &str = "qemu-aarch64";
const SYSROOT: &str = "/usr/aarch64-linux-gnu";

/// Hears that an order was answered: its number and code; `None`: no order will be answered any more.
pub(crate) type Told = fn(u64, Option<(u64, i32)>);

/// A running emulator.
pub(crate) struct Emulator {
    child: Child,
    orders: ChildStdin,
    /// Where the image installs itself.
    folder: PathBuf,
    /// Where AICPU sees the control registers.
    pub(crate) registers: u64,
}

impl Emulator {
    /// Starts it; the memory learns where the device sees it. `told` hears of each answer, with the generation.
    pub(crate) fn start(memory: &mut Memory, generation: u64, told: Told) -> Result<Self, String> {
        let folder =
            env::temp_dir().join(format!("pto-stand-in-{}-{generation}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let program = program()?;
        let mut command = match cfg!(target_arch = "aarch64") {
            true => Command::new(&program),
            false => {
                let mut command = Command::new(QEMU);
                command.args(["-L", SYSROOT]).arg(&program);
                command
            }
        };
        command.arg("serve").arg(memory.path()).arg(BYTES.to_string()).arg(&folder);
        command.env("PTO_AICPU_KERNELS", &folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            format!(
                "{} cannot be started ({error}); it needs {QEMU} (Debian: qemu-user)",
                program.display()
            )
        })?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let (Some(orders), Some(answers)) = (orders, answers) else {
            return Err("no pipes".into());
        };
        let mut answers = BufReader::new(answers);
        let registers = greet(&mut answers, memory)?;
        std::thread::spawn(move || listen(answers, generation, told));
        Ok(Self { child, orders, folder, registers })
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

/// The first line: where the device sees memory and registers.
fn greet(answers: &mut BufReader<ChildStdout>, memory: &mut Memory) -> Result<u64, String> {
    let mut line = String::new();
    answers.read_line(&mut line).map_err(|error| error.to_string())?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["ready", gm, registers] = *words.as_slice() else {
        return Err(format!("the emulator did not come up: {line:?}"));
    };
    let number = |word: &str| word.parse::<u64>().map_err(|error| error.to_string());
    memory.address = number(gm)?;
    number(registers)
}

/// Tells what the emulator answers, until it ends.
fn listen(answers: BufReader<ChildStdout>, generation: u64, told: Told) {
    for line in answers.lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["done", id, code] = *words.as_slice() else { continue };
        if let (Ok(id), Ok(code)) = (id.parse(), code.parse()) {
            told(generation, Some((id, code)));
        }
    }
    told(generation, None);
}

/// The emulator's file: beside the library, in `bin`.
fn program() -> Result<PathBuf, String> {
    let home = match env::var_os("PTO_STAND_IN_HOME") {
        Some(home) => PathBuf::from(home),
        None => own_home().ok_or("the stand-in does not know where it lies")?,
    };
    let program = home.join("bin/pto-cann-emulator");
    if program.is_file() { Ok(program) } else { Err(format!("there is no {}", program.display())) }
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
    // SAFETY: an address of this library, and a place for what is known of it.
    let known = unsafe { libc::dladdr(here, &raw mut found) };
    if known == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: not null: the path by which the library was loaded.
    let path = PathBuf::from(unsafe { CStr::from_ptr(found.dli_fname) }.to_str().ok()?);
    path.parent()?.parent().map(ToOwned::to_owned)
}
