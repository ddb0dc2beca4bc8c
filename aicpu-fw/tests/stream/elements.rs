//! Elements of tensors in GM: whether one can be read is known without reading it.

use pto_abi::GmAddr;
use pto_abi::gm::GmWindow;
use pto_aicpu_fw::block_shapes::{has_element, read_element};

#[repr(align(64))]
struct Bytes([u8; 32]);

#[test]
fn an_element_is_there_when_it_can_be_read() {
    let mut memory = Bytes([7; 32]);
    let start = GmAddr(0x1000);
    // SAFETY: the bytes live until the end of the test, and are reached through the window only.
    let gm = unsafe { GmWindow::from_raw(memory.0.as_mut_ptr(), 32, start) };
    for bytes in [1, 2, 4, 8] {
        for address in (0x0FF0..0x1040).chain([0, u64::MAX - 3, u64::MAX]).map(GmAddr) {
            let is_read = read_element(&gm, address, bytes).is_some();
            assert_eq!(has_element(&gm, address, bytes), is_read, "{bytes} bytes at {address:?}");
        }
    }
    assert!(has_element(&gm, GmAddr(0x1018), 8) && !has_element(&gm, GmAddr(0x1019), 8));
    assert!([0, 3, 16].into_iter().all(|bytes| !has_element(&gm, start, bytes)), "no such element");
}
