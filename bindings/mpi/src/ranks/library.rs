//! A loaded plug-in: the only file of this crate that calls into it. [`MpiLibrary`] is one [`Wire`]; the other one is for tests.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::path::Path;

use pto_host::checked_shared_object;

use crate::ranks::error::MpiError;
use crate::ranks::group::ByteRange;
use crate::ranks::wire::{Arrival, RequestId, Wire, WireError, length, pointer};
use crate::table::{Channel, MpiWorld, PluginTable, Progress, SYMBOL, TEXT_BYTES};

/// MPI, started.
pub(crate) struct MpiLibrary {
    table: PluginTable,
    /// Room for the answers to a test.
    progress: Vec<Progress>,
}

/// This rank's view of the world when MPI started.
pub(crate) struct Started {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    pub(crate) max_tag: i32,
    pub(crate) host: String,
    pub(crate) library: String,
}

impl MpiLibrary {
    /// Loads the plug-in and starts MPI.
    pub(crate) fn start(path: &Path) -> Result<(Self, Started), MpiError> {
        let library = Self { table: load(path)?, progress: Vec::new() };
        let mut world = MaybeUninit::<MpiWorld>::zeroed();
        // SAFETY: the table is the plug-in's, and the pointer is valid.
        let error = unsafe { (library.table.start)(world.as_mut_ptr()) };
        library.checked(error).map_err(|why| MpiError::Refused { what: "start", why: why.0 })?;
        // SAFETY: `start` has filled it; zeros are valid as well.
        let world = unsafe { world.assume_init() };
        let number = |number: i32| u32::try_from(number).unwrap_or(0);
        let started = Started {
            rank: number(world.rank),
            ranks: number(world.ranks),
            max_tag: world.max_tag,
            host: text(&world.host),
            library: text(&world.library),
        };
        Ok((library, started))
    }

    fn checked(&self, error: i32) -> Result<(), WireError> {
        if error == 0 {
            return Ok(());
        }
        let mut said: [c_char; TEXT_BYTES] = [0; TEXT_BYTES];
        // SAFETY: the text has as much room as is said.
        unsafe { (self.table.error_text)(error, said.as_mut_ptr(), said.len()) };
        Err(WireError(text(&said)))
    }
}

impl Wire for MpiLibrary {
    fn send(
        &mut self,
        channel: Channel,
        from: ByteRange,
        peer: u32,
        tag: i32,
    ) -> Result<RequestId, WireError> {
        let (mut number, from) = (0, (pointer(from).cast_const(), length(from)));
        // SAFETY: the maker of the span keeps its bytes until the request is complete (`Wire`).
        let error =
            unsafe { (self.table.send)(channel, from.0, from.1, rank(peer), tag, &raw mut number) };
        self.checked(error).map(|()| RequestId(number))
    }

    fn receive(
        &mut self,
        channel: Channel,
        to: ByteRange,
        peer: Option<u32>,
        tag: i32,
    ) -> Result<RequestId, WireError> {
        let peer = peer.map_or(crate::table::ANY_PEER, rank);
        let mut number = 0;
        // SAFETY: the maker of the span leaves its bytes alone until the request is complete (`Wire`).
        let error = unsafe {
            (self.table.receive)(channel, pointer(to), length(to), peer, tag, &raw mut number)
        };
        self.checked(error).map(|()| RequestId(number))
    }

    fn test(
        &mut self,
        requests: &[RequestId],
        answers: &mut Vec<Option<Arrival>>,
    ) -> Result<(), WireError> {
        answers.clear();
        let (count, numbers) = (requests.len(), requests.as_ptr().cast::<u64>());
        self.progress.resize(count, Progress::default());
        // SAFETY: both have so many elements, and a request is a number.
        let error = unsafe { (self.table.test)(numbers, count, self.progress.as_mut_ptr()) };
        self.checked(error)?;
        let arrival = |progress: &Progress| {
            let peer = u32::try_from(progress.peer).unwrap_or(u32::MAX);
            (progress.is_complete != 0).then_some(Arrival { peer, bytes: progress.bytes })
        };
        answers.extend(self.progress.iter().map(arrival));
        Ok(())
    }

    fn give_up(&mut self, request: RequestId) {
        // SAFETY: a number that the plug-in does not know is refused.
        let _ = unsafe { (self.table.cancel)(request.0) };
    }

    fn finish(&mut self) -> Result<(), WireError> {
        // SAFETY: MPI ends once; a second call is refused.
        let error = unsafe { (self.table.finish)() };
        self.checked(error)
    }

    fn all_reduce_sum(&mut self, from: &[f32], to: &mut [f32]) -> Result<(), WireError> {
        let count = from.len().min(to.len());
        // SAFETY: both have so many elements; one is borrowed for good, so that they do not overlap.
        let error = unsafe { (self.table.all_reduce_sum)(from.as_ptr(), to.as_mut_ptr(), count) };
        self.checked(error)
    }

    fn barrier(&mut self) -> Result<(), WireError> {
        // SAFETY: MPI has started.
        let error = unsafe { (self.table.barrier)() };
        self.checked(error)
    }
}

fn rank(peer: u32) -> i32 {
    // MPI refuses a rank that it does not have, and says so.
    i32::try_from(peer).unwrap_or(i32::MAX)
}

fn text(letters: &[c_char]) -> String {
    let bytes: Vec<u8> = letters.iter().map(|letter| letter.to_ne_bytes()[0]).collect();
    let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
    text.to_string_lossy().into_owned()
}

/// The table of the plug-in. It stays loaded until the process ends: MPI cannot be started twice.
fn load(path: &Path) -> Result<PluginTable, MpiError> {
    let refused = |why: String| MpiError::Load { path: path.to_path_buf(), why };
    let name = checked_shared_object(path).map_err(|why| refused(format!("the file {why}")))?;
    // Globally: parts that OpenMPI loads later look for its symbols there.
    // SAFETY: the path is a C string; loading code is what the caller asks for.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if handle.is_null() {
        return Err(refused(loader_says()));
    }
    // SAFETY: the handle is open, and the symbol a C string.
    let symbol = unsafe { libc::dlsym(handle, SYMBOL.as_ptr()) };
    if symbol.is_null() {
        return Err(refused("it is no plug-in of pto".to_owned()));
    }
    let versions: *const [u32; 2] = symbol.cast();
    // SAFETY: a table of every version begins with its version and its size.
    let versions = unsafe { versions.read() };
    if versions != [PluginTable::VERSION, PluginTable::BYTES] {
        return Err(MpiError::Version { path: path.to_path_buf() });
    }
    // SAFETY: version and size say that this is a table as we know it.
    Ok(unsafe { symbol.cast::<PluginTable>().read() })
}

fn loader_says() -> String {
    // SAFETY: no arguments; the text is valid until the next call of the loader on this thread.
    let said = unsafe { libc::dlerror() };
    if said.is_null() {
        return "the loader does not say why".to_owned();
    }
    // SAFETY: dlerror returns a C string.
    unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned()
}
