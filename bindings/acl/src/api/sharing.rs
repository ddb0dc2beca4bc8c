//! Memory between processes: keys of blocks, handles of physical memory.

use super::virtual_memory::named;
use crate::common::argument::{Address, In, Out, Text, put_text};
use crate::common::entry::api;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::fleet;
use crate::device::mapping::PAGE;
use crate::device::sharing::{self, Readers};

api! {
    fn aclrtIpcMemGetExportKey(address: Address, bytes: usize, text: Out<u8>, room: usize, flags: u64) {
        let output = text.required("key")?;
        let at = address.required("address")?;
        require(bytes > 0, || Refusal::argument("the size is 0; export one byte at least"))?;
        require(room >= 65, || Refusal::value(format!("the key needs 65 bytes, and there are {room}")))?;
        require(flags <= 1, || Refusal::argument(format!("flags {flags:#x} have unknown bits")))?;
        require(at.is_multiple_of(PAGE), || Refusal::value(format!("{at:#x} does not begin a page")))?;
        put_text(&output, room, &sharing::export_block(at, bytes, readers(flags == 1))?)
    }

    fn aclrtIpcMemSetImportPid(text: Text, processes: In<i32>, count: usize) {
        let processes = processes.list("processes", count)?;
        require(count > 0, || Refusal::argument("no process is named; name one at least"))?;
        sharing::allow(&text.read("key")?, &processes)
    }

    fn aclrtIpcMemImportByKey(address: Out<Address>, text: Text, flags: u64) {
        let output = address.required("address")?;
        require(flags <= 1, || Refusal::argument(format!("flags {flags:#x} have unknown bits")))?;
        output.set(Address::of(sharing::import_block(text.read("key")?)?));
        Ok(())
    }

    fn aclrtIpcMemClose(text: Text) {
        sharing::close(&text.read("key")?)
    }

    fn aclrtMemExportToShareableHandle(memory: Handle, kind: u32, flags: u64, handle: Out<u64>) {
        let output = handle.required("handle")?;
        require(matches!(kind, 0 | 2), || Refusal::argument(format!("there is no kind {kind} of handles")))?;
        output.set(export(memory, flags)?);
        Ok(())
    }

    fn aclrtMemExportToShareableHandleV2(memory: Handle, flags: u64, kind: u32, handle: Out<u64>) {
        let output = handle.required("handle")?;
        require(kind != 2, || Refusal::unsupported("handles that several hosts share; use ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT"))?;
        require(kind == 1, || Refusal::argument(format!("there is no kind {kind} of handles")))?;
        output.set(export(memory, flags)?);
        Ok(())
    }

    fn aclrtMemImportFromShareableHandle(handle: u64, device: i32, memory: Out<Handle>) {
        fleet::check(device)?;
        let output = memory.required("memory")?;
        output.set(sharing::import_physical(handle)?);
        Ok(())
    }

    fn aclrtMemImportFromShareableHandleV2(handle: In<u64>, kind: u32, flags: u64, memory: Out<Handle>) {
        require(kind != 2, || Refusal::unsupported("handles that several hosts share; use ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT"))?;
        require(kind == 1, || Refusal::argument(format!("there is no kind {kind} of handles")))?;
        require(flags == 0, || Refusal::argument("flags are reserved; pass 0"))?;
        let handle = handle.get("handle")?;
        let output = memory.required("memory")?;
        output.set(sharing::import_physical(handle)?);
        Ok(())
    }

    fn aclrtMemSetPidToShareableHandle(handle: u64, processes: In<i32>, count: usize) {
        let processes = processes.list("processes", count)?;
        require(count > 0, || Refusal::argument("no process is named; name one at least"))?;
        sharing::allow_physical(handle, &processes)
    }

    fn aclrtMemSetPidToShareableHandleV2(handle: In<u64>, kind: u32, processes: In<i32>, count: usize) {
        require(kind == 1, || Refusal::argument(format!("there is no kind {kind} of handles here")))?;
        let processes = processes.list("processes", count)?;
        require(count > 0, || Refusal::argument("no process is named; name one at least"))?;
        sharing::allow_physical(handle.get("handle")?, &processes)
    }
}

fn export(memory: Handle, flags: u64) -> Answer<u64> {
    require(flags <= 1, || Refusal::argument(format!("flags {flags:#x} have unknown bits")))?;
    sharing::export_physical(named(memory)?, readers(flags == 1))
}

/// Who may import, where a flag of the caller says whether everybody may.
pub(super) fn readers(for_all: bool) -> Readers {
    if for_all { Readers::All } else { Readers::Named }
}
