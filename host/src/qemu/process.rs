//! The QEMU process: started, watched, and ended with its owner, whichever way that ends.
//!
//! One thread starts the process and stays until it has ended: the kernel kills the process when that thread
//! dies (`PR_SET_PDEATHSIG`), so that Ctrl-C or a killed host leave no process.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::memory::Ram;

/// The name of QEMU's program, by default.
pub const PROGRAM: &str = "qemu-system-aarch64";
/// How often the owner looks whether the process has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How to start the process.
#[derive(Clone, Debug)]
pub struct ProcessOptions {
    /// The program.
    pub program: PathBuf,
    /// The image to boot.
    pub image: PathBuf,
    /// The image as an open file, which is booted instead of the one at `image`.
    pub image_file: Option<Arc<OwnedFd>>,
    /// vCPUs.
    pub vcpus: u32,
    /// How guest code is executed.
    pub execution: Execution,
    /// Further arguments.
    pub extra: Vec<OsString>,
}

/// How guest code is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// One host thread per vCPU.
    Parallel,
    /// One instruction is one tick of the clock, always; one host thread.
    Counted,
}

/// A running process.
pub struct Process {
    stop: Option<Sender<()>>,
    keeper: Option<JoinHandle<()>>,
    shared: Arc<ProcessState>,
}

#[derive(Default)]
struct ProcessState {
    id: OnceLock<u32>,
    ended: Mutex<Option<ExitStatus>>,
    console: Mutex<Vec<u8>>,
}

impl Process {
    /// Starts the process on `ram`.
    ///
    /// # Errors
    /// What the system says, when the program cannot be started.
    pub fn start(options: &ProcessOptions, ram: &Ram) -> io::Result<Self> {
        let command = command(options, ram);
        let shared = Arc::new(ProcessState::default());
        let (stop, stopped) = channel();
        let (started, has_started) = channel();
        let for_keeper = Arc::clone(&shared);
        let keeper = std::thread::Builder::new()
            .name("pto-qemu".into())
            .spawn(move || keep(command, &for_keeper, &started, &stopped))?;
        match has_started.recv() {
            Ok(Ok(())) => Ok(Self { stop: Some(stop), keeper: Some(keeper), shared }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    }

    /// The process's id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.shared.id.get().copied().unwrap_or(0)
    }

    /// How the process ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<ExitStatus> {
        *lock(&self.shared.ended)
    }

    /// What the machine wrote to its console, and QEMU to its standard error.
    #[must_use]
    pub fn console(&self) -> String {
        String::from_utf8_lossy(&lock(&self.shared.console)).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(keeper) = self.keeper.take() {
            keeper.join().unwrap_or_default();
        }
    }
}

/// The thread that owns the process.
fn keep(
    mut command: Command,
    shared: &Arc<ProcessState>,
    started: &Sender<io::Result<()>>,
    stopped: &Receiver<()>,
) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            started.send(Err(error)).unwrap_or_default();
            return;
        }
    };
    shared.id.get_or_init(|| child.id());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let readers = [
        out.map(|pipe| collect(pipe, shared)).transpose(),
        err.map(|pipe| collect(pipe, shared)).transpose(),
    ];
    let [out, err] = match readers {
        [Ok(out), Ok(err)] => [out, err],
        [Err(error), _] | [_, Err(error)] => {
            // No thread would read its output, and it would wait for that.
            child.kill().unwrap_or_default();
            child.wait().map(drop).unwrap_or_default();
            started.send(Err(error)).unwrap_or_default();
            return;
        }
    };
    started.send(Ok(())).unwrap_or_default();
    let status = wait(&mut child, stopped);
    for reader in [out, err].into_iter().flatten() {
        reader.join().unwrap_or_default();
    }
    *lock(&shared.ended) = status;
}

fn wait(child: &mut Child, stopped: &Receiver<()>) -> Option<ExitStatus> {
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Disconnected) {
            // It may have ended by itself meanwhile.
            child.kill().unwrap_or_default();
            return child.wait().ok();
        }
    }
}

fn collect(
    mut pipe: impl Read + Send + 'static,
    shared: &Arc<ProcessState>,
) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("pto-console".into()).spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            lock(&shared.console).extend_from_slice(&buffer[..count]);
        }
    })
}

fn command(options: &ProcessOptions, ram: &Ram) -> Command {
    let descriptor = ram.file().as_raw_fd();
    let megabytes = ram.bytes() >> 20;
    // Host and guest share read-modify-writes only if QEMU is built for more than one vCPU (facts).
    let vcpus = format!("{},maxcpus={}", options.vcpus, options.vcpus.max(2));
    let memory = format!(
        "memory-backend-file,id=ram,size={megabytes}M,mem-path=/proc/self/fd/{descriptor},share=on"
    );
    let opened = options.image_file.as_ref().map(|file| file.as_raw_fd());
    let image = opened.map(|image| PathBuf::from(format!("/proc/self/fd/{image}")));
    let image = image.unwrap_or_else(|| options.image.clone());
    let inherited = [Some(descriptor), opened];
    let mut command = Command::new(&options.program);
    command
        .args(["-M", "virt,gic-version=3,memory-backend=ram", "-cpu", "cortex-a72"])
        .args(["-smp", &vcpus, "-m", &format!("{megabytes}M"), "-object", &memory])
        .args(["-display", "none", "-nodefaults", "-serial", "stdio", "-monitor", "none"])
        .args(["-semihosting", "-no-user-config", "-kernel"])
        .arg(&image)
        .args(match options.execution {
            Execution::Parallel => ["-accel", "tcg,thread=multi"],
            Execution::Counted => ["-icount", "shift=4,sleep=off"],
        })
        .args(&options.extra)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let owner = std::process::id();
    // SAFETY: between fork and exec only calls that are safe there are made.
    unsafe { command.pre_exec(move || inherit(inherited, owner)) };
    command
}

/// In the child: keeps RAM and image open over exec, and dies with the thread that started it.
fn inherit(descriptors: [Option<RawFd>; 2], owner: u32) -> io::Result<()> {
    for descriptor in descriptors.into_iter().flatten() {
        // SAFETY: clears close-on-exec of a descriptor that is open here.
        if unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: asks for a signal; touches no memory.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // The owner may have gone before that.
    if std::os::unix::process::parent_id() != owner {
        return Err(io::Error::from(io::ErrorKind::NotFound));
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a program is that is called by its name.
#[must_use]
pub fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_path_buf());
    }
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|folder| folder.join(program)).find(|path| path.is_file())
}
