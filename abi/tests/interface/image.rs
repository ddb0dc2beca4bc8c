//! The check of graph images: damage anywhere is found, and never read past.

use bytemuck::Zeroable;
use pto_abi::Fault;
use pto_abi::image::{CheckedImage, Checksum, FieldMismatch, GraphHeader, ImageParts, ImageTask};
use pto_abi::kinds::GraphFlags;
use pto_abi::runtime::ABI_MINOR;

use crate::memory::with_gm;

const ARGS: [u64; 3] = [11, 22, 33];

/// Three tasks in a chain; task `i` has argument `i`.
fn tasks() -> [ImageTask; 3] {
    [0, 1, 2].map(|index: u32| ImageTask {
        first_arg: index,
        first_edge: index.saturating_sub(1),
        edge_count: u32::from(index > 0),
        arg_count: 1,
        kind: 1,
        ..ImageTask::zeroed()
    })
}

/// The image of the chain, put together here: the writer must come to the same.
fn image() -> Vec<u8> {
    let mut body = bytemuck::bytes_of(&tasks()).to_vec();
    body.extend_from_slice(bytemuck::bytes_of(&[0_u32, 1]));
    body.extend_from_slice(bytemuck::bytes_of(&ARGS));
    let mut header = GraphHeader::new(GraphFlags::TOPOLOGICAL, 3, 2, 3);
    header.checksum = Checksum::of(&body);
    [bytemuck::bytes_of(&header), &body].concat()
}

/// With the checksum that belongs to the body.
fn sealed(mut image: Vec<u8>) -> Vec<u8> {
    let sum = Checksum::of(&image[128..]);
    image[32..40].copy_from_slice(&sum.to_le_bytes());
    image
}

fn check(image: &[u8]) -> Result<(), FieldMismatch> {
    with_gm(image.len() as u64, |gm| {
        gm.write_bytes(0, image).unwrap();
        CheckedImage::check(gm).map(drop)
    })
}

#[test]
fn what_is_right_reads_as_it_was_written() {
    let bytes = image();
    with_gm(bytes.len() as u64, |gm| {
        gm.write_bytes(0, &bytes).unwrap();
        let image = CheckedImage::check(gm).unwrap();
        assert_eq!((image.task_count(), image.edge_count(), image.arg_words()), (3, 2, 3));
        assert!(image.is_topological());
        assert_eq!((image.producer(0), image.producer(1)), (0, 1));
        assert_eq!([0, 1, 2].map(|word| image.arg(word)), ARGS);
        assert_eq!(image.task(2).first_edge, 1);
        // Past the end there is nothing, and nothing is read.
        assert_eq!(image.task(99), ImageTask::zeroed());
        assert_eq!((image.arg(99), image.producer(u32::MAX)), (0, u32::MAX));
    });
}

#[test]
fn the_writer_writes_the_same_to_a_list_and_to_a_window() {
    for producers in [&[0_u32, 1][..], &[0, 1, 1], &[]] {
        let flags = GraphFlags::TOPOLOGICAL;
        let parts = ImageParts { flags, tasks: &tasks(), producers, args: &ARGS };
        let (header, mut bytes) = (parts.header(), Vec::new());
        parts.put(&header, |part| bytes.extend_from_slice(part));
        assert_eq!(bytes.len() as u64, header.total_bytes);
        assert_eq!(bytes == image(), producers.len() == 2, "{} edges", producers.len());
        with_gm(header.total_bytes, |gm| {
            gm.write_bytes(0, &vec![0xFF; bytes.len()]).unwrap();
            parts.write_to(&header, &gm, 0).unwrap();
            let mut written = vec![0; bytes.len()];
            gm.read_bytes(0, &mut written).unwrap();
            assert_eq!(written, bytes);
            assert_eq!(parts.write_to(&header, &gm, 8), None, "it does not fit");
        });
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let good = image();
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let result = check(&bad);
        // What says less than it could is accepted: an order that is there and not claimed, a lower minor; and room for transfers that are not
        // there. Transfers without room are refused when they are loaded.
        let is_flag = (40 * 8..40 * 8 + 2).contains(&bit);
        let is_lower_minor = (80..96).contains(&bit) && ABI_MINOR >> (bit - 80) & 1 == 1;
        assert_eq!(result.is_ok(), is_flag || is_lower_minor, "bit {bit}: {result:?}");
    }
}

#[test]
fn every_length_but_the_right_one_is_refused() {
    let mut longer = image();
    let right = longer.len();
    longer.extend([0; 64]);
    for bytes in 0..longer.len() {
        let refused = check(&longer[..bytes]);
        assert_eq!(refused.is_ok(), bytes == right, "{bytes} bytes");
        if let Err(refusal) = refused {
            assert_eq!(refusal.fault, Fault::GRAPH_TOTAL_BYTES);
        }
    }
}

/// For every value of a 32-bit word of the body, the check ends, and with a fault of its own or none.
#[test]
fn any_word_of_the_body() {
    for at in (128..image().len()).step_by(4) {
        for word in [0, 1, 2, 3, 0x7FFF_FFFF, 0x8000_0000, u32::MAX - 1, u32::MAX] {
            let mut bad = image();
            bad[at..at + 4].copy_from_slice(&word.to_le_bytes());
            if let Err(refusal) = check(&sealed(bad)) {
                assert_eq!(refusal.fault.subsystem(), "GRAPH", "{word} at {at}");
                assert_ne!(refusal.fault, Fault::GRAPH_CHECKSUM, "{word} at {at}");
            }
        }
    }
}

#[test]
fn a_producer_after_its_consumer_needs_an_honest_header() {
    let mut image = image();
    // Task 1 waits for task 2.
    image[200..204].copy_from_slice(&2_u32.to_le_bytes());
    let image = sealed(image);
    let expected = FieldMismatch { fault: Fault::GRAPH_FLAGS, found: 2, expected: 1 };
    assert_eq!(check(&image), Err(expected));
    let mut honest = image;
    honest[40] = 0;
    assert_eq!(check(&honest), Ok(()));
}

#[test]
fn the_checksum_sees_order_and_length() {
    let sum = |words: &[u64]| Checksum::of(bytemuck::cast_slice(words));
    let sums = [sum(&[]), sum(&[0]), sum(&[0, 0]), sum(&[1, 2]), sum(&[2, 1]), sum(&[1, 2, 0])];
    for (i, one) in sums.iter().enumerate() {
        assert!(sums[..i].iter().all(|other| other != one), "{i}");
    }
    assert_eq!(Checksum::of(&[1, 0, 0, 0, 0, 0, 0, 0, 2]), sum(&[1, 2]), "padded with zeros");
}

/// For every value that a word is changed to, at every position.
#[test]
fn the_checksum_sees_any_change_of_a_word() {
    let words: Vec<u64> = (0..11).map(|word| word * 0x0101_0101_0101_0101).collect();
    let sum = |words: &[u64]| Checksum::of(bytemuck::cast_slice(words));
    let right = sum(&words);
    for at in 0..words.len() {
        for change in [1, 1 << 31, 1 << 63, u64::MAX, 0x0101_0101_0101_0101] {
            let mut wrong = words.clone();
            wrong[at] ^= change;
            assert_ne!(sum(&wrong), right, "{change:#x} at {at}");
        }
    }
}
