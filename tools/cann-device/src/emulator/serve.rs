//! The device side of the stand-in for the vendor's libraries (`../stand_in`): AICPUs and AICores that take orders
//! from another process, which shares the memory.
//!
//! ```text
//! serve FILE BYTES GM REGISTERS FOLDER             maps FILE at GM, control registers at REGISTERS, and says `ready`
//! bootstrap ID ARGS                                plays libaicpu_extend_kernels.so
//! aicpu ID FILE FUNCTION INSTANCES ARGS            enters FUNCTION of FOLDER/FILE on so many threads
//! aicore ID BLOCKS ARGS [WORKER]                   starts the cores of the launch words in the arguments; they run the worker in FOLDER/WORKER
//! ```
//! Each order is answered by `done ID CODE` when it has ended. The process ends with its input.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::io::{BufRead as _, Write as _};
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pto_abi::arena::Arena;
use pto_abi::launch_words::{Architecture, CorePosition, LaunchPlan, LaunchWords};
use pto_abi::sync::Ordering;
use pto_abi::{CoreKind, GmAddr, GmWindow, bootstrap};

use crate::aicore::{Aicore, Program};
use crate::cluster_flags::ClusterFlags;
use crate::core::{Conduct, Core, Watch};
use crate::device::call;
use crate::image::{Entry, entry, open};
use crate::memory::Registers;

/// What an order answers that cannot be carried out.
const NOT_DONE: i32 = -100;
/// What the cores answer when a doorbell broke the protocol.
const BROKEN_PROTOCOL: i32 = -101;

/// What orders share.
struct Machine {
    gm: GmWindow<'static>,
    registers: Registers,
    folder: PathBuf,
    entries: Mutex<HashMap<(String, String), Entry>>,
    programs: Mutex<HashMap<String, Program>>,
}

/// Serves orders until the input ends.
pub(crate) fn serve([file, bytes, gm, registers, folder]: [&str; 5]) -> Result<(), String> {
    let machine = Arc::new(Machine {
        gm: map_gm(file, number(bytes)?, number(gm)?)?,
        registers: Registers::map_at(Architecture::A2A3, number(registers)?),
        folder: folder.into(),
        entries: Mutex::default(),
        programs: Mutex::default(),
    });
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let machine = Arc::clone(&machine);
        std::thread::spawn(move || machine.obey(&line));
    }
    Ok(())
}

/// Maps the memory that the other process has as well; kernels run there.
fn map_gm(file: &str, bytes: u64, address: u64) -> Result<GmWindow<'static>, String> {
    let failed = |what: &str| format!("{file}: {what}: {}", std::io::Error::last_os_error());
    let name = CString::new(file).map_err(|error| error.to_string())?;
    // SAFETY: the name is a string.
    let descriptor = unsafe { libc::open(name.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if descriptor < 0 {
        return Err(failed("open"));
    }
    let wanted = std::ptr::with_exposed_provenance_mut::<c_void>(address as usize);
    let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
    // SAFETY: a new mapping that replaces none.
    let start = unsafe { libc::mmap(wanted, bytes as usize, protection, flags, descriptor, 0) };
    if start != wanted {
        return Err(failed("mmap"));
    }
    // SAFETY: mapped for the life of the process, page-aligned; reached by windows, and by kernels' raw pointers.
    Ok(unsafe { GmWindow::from_raw(start.cast(), bytes, GmAddr(address)) })
}

impl Machine {
    fn obey(&self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let (id, result) = match *words.as_slice() {
            ["bootstrap", id, args] => (id, self.bootstrap(args)),
            ["aicpu", id, file, function, instances, args] => {
                (id, self.aicpu(file, function, instances, args))
            }
            ["aicore", id, blocks, args] => (id, self.aicore(blocks, args, None)),
            ["aicore", id, blocks, args, worker] => (id, self.aicore(blocks, args, Some(worker))),
            _ => ("0", Err(format!("no order: {line}"))),
        };
        let code = result.unwrap_or_else(|why| {
            eprintln!("{line}: {why}");
            NOT_DONE
        });
        // Whoever does not listen any more has ended this process already.
        let _ = writeln!(std::io::stdout().lock(), "done {id} {code}");
    }

    /// Loads the library of the device arguments, and calls its initialisation with the same arguments.
    fn bootstrap(&self, args: &str) -> Result<i32, String> {
        let args = number(args)?;
        let device_args: u64 = self.read(args + bootstrap::ARGS_DEVICE_ARGS as u64)?;
        let at = device_args + bootstrap::DEVICE_ARGS_DISPATCHER as u64;
        let (code, bytes) = (self.read(at)?, self.read::<u64>(at + 8)?);
        let offset = self.gm.offset_of(GmAddr(code), bytes).ok_or("a library outside of GM")?;
        let mut library = vec![0; bytes as usize];
        self.gm.read_bytes(offset, &mut library).ok_or("a library outside of GM")?;
        let path = self.folder.join("dispatcher.so");
        std::fs::write(&path, library).map_err(|error| error.to_string())?;
        let handle = open(&path.to_string_lossy())?;
        entry(handle, c"StaticTileFwkBackendKernelServer")?;
        entry(handle, c"DynTileFwkBackendKernelServer")?;
        Ok(call(entry(handle, c"DynTileFwkBackendKernelServerInit")?, args as usize))
    }

    fn aicpu(
        &self,
        file: &str,
        function: &str,
        instances: &str,
        args: &str,
    ) -> Result<i32, String> {
        let (server, args) = (self.entry(file, function)?, number(args)? as usize);
        let codes: Vec<i32> = std::thread::scope(|scope| {
            let enter = |_| scope.spawn(move || call(server, args));
            let threads: Vec<_> = (0..number(instances)?).map(enter).collect();
            Ok::<_, String>(threads.into_iter().map(|one| one.join().unwrap_or(NOT_DONE)).collect())
        })?;
        Ok(codes.into_iter().find(|code| *code != 0).unwrap_or(0))
    }

    fn entry(&self, file: &str, function: &str) -> Result<Entry, String> {
        let mut entries = self.entries.lock().map_err(|error| error.to_string())?;
        let key = (file.to_owned(), function.to_owned());
        if let Some(entry) = entries.get(&key) {
            return Ok(*entry);
        }
        let path: &Path = file.as_ref();
        let name = path.file_name().ok_or("a library without a name")?;
        let handle = open(&self.folder.join(name).to_string_lossy())?;
        let symbol = CString::new(function).map_err(|error| error.to_string())?;
        let found = entry(handle, &symbol)?;
        entries.insert(key, found);
        Ok(found)
    }

    /// Starts a thread for each core of the launch words, and waits until all have left.
    fn aicore(&self, blocks: &str, args: &str, worker: Option<&str>) -> Result<i32, String> {
        let program = worker.map(|file| self.program(file)).transpose()?;
        let flags_base: u64 = self.read(number(args)?)?;
        let words: u64 = self.read(number(args)? + 8)?;
        let plan: LaunchPlan = self.read(words)?;
        if u64::from(plan.core_count) != 3 * number(blocks)? {
            return Err(format!(
                "{} cores in the launch words of {blocks} blocks",
                plan.core_count
            ));
        }
        let arena = Arena::new(self.gm, plan.arena_address, plan.arena_bytes).ok_or("no arena")?;
        let watch: Arc<Watch> = Arc::default();
        let clusters = number(blocks)? as u32;
        let flags: Vec<Arc<ClusterFlags>> = (0..clusters).map(|_| Arc::default()).collect();
        let mut threads = Vec::new();
        for worker in 0..plan.core_count {
            let at = words + offset_of!(LaunchWords, cores) as u64 + 4 * u64::from(worker);
            let position: CorePosition = self.read(at)?;
            let kind = if position.sub == 0 { CoreKind::AIC } else { CoreKind::AIV };
            let registers = self.registers.core(position);
            registers.cond.store(0, Ordering::Relaxed);
            let lines = &arena.workers()[worker as usize];
            let (conduct, expected, watch) = (Conduct::Good, None, Arc::clone(&watch));
            let Some(program) = program else {
                let core = Core { lines, registers, worker, kind, conduct, watch, expected };
                threads.push(std::thread::spawn(move || core.serve()));
                continue;
            };
            // A launch leaves zero in the doorbell.
            registers.data_main_base.store(0, Ordering::Relaxed);
            let block_and_sub = match worker.checked_sub(clusters) {
                None => [worker, clusters, 0, 1],
                Some(vector) => [vector / 2, clusters, vector % 2, 2],
            };
            let flags = Arc::clone(&flags[block_and_sub[0] as usize]);
            let gm = self.gm;
            let core = Aicore { kind, block_and_sub, registers, gm, watch, flags, flags_base };
            threads.push(std::thread::spawn(move || program.run(core, words)));
        }
        threads.into_iter().try_for_each(|core| core.join().map_err(|_| "a core panicked"))?;
        for (cluster, flags) in flags.iter().enumerate() {
            if let Some(flag) = flags.left_over() {
                eprintln!("cluster {cluster}: flag {flag} was raised, and nothing waited for it");
                watch.violations.fetch_add(1, Ordering::Relaxed);
            }
        }
        let is_broken = watch.violations.load(Ordering::Relaxed) != 0;
        Ok(if is_broken { BROKEN_PROTOCOL } else { 0 })
    }

    /// The worker in this file of the folder, loaded once.
    fn program(&self, file: &str) -> Result<Program, String> {
        let mut programs = self.programs.lock().map_err(|error| error.to_string())?;
        if let Some(program) = programs.get(file) {
            return Ok(*program);
        }
        let program = Program::load(&self.folder.join(file).to_string_lossy())?;
        programs.insert(file.to_owned(), program);
        Ok(program)
    }

    fn read<T: bytemuck::Pod>(&self, address: u64) -> Result<T, String> {
        let offset = self.gm.offset_of(GmAddr(address), size_of::<T>() as u64);
        let value = offset.and_then(|offset| self.gm.read(offset));
        value.ok_or_else(|| format!("{address:#x} is not in GM, or misaligned"))
    }
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("{word} is no number"))
}
