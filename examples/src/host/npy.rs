//! Reads NumPy files (`.npy`) into tensors, and writes tensors to such files. The error for a bad file says what was found
//! and what was expected.
//!
//! [`read`] takes the bytes of a file from any source. The caller adds the name of the file to an error.

use std::format;
use std::io::{Cursor, ErrorKind, Read, Write};
use std::string::String;
use std::vec::Vec;

use super::dtype::{DType as Kind, ElementVec};
use super::tensor::Tensor;
use npyz::{DType, NpyFile, Order, TypeChar, WriterBuilder};

/// The longest header that a file may have: that of an array of numbers is below 200 bytes.
const MAX_HEADER_BYTES: u64 = 1 << 16;

/// Writes a tensor.
///
/// # Errors
/// Those of `to`.
pub fn write(to: &mut impl Write, tensor: &Tensor) -> std::io::Result<()> {
    /// Passes the elements, whatever their type is, to a function.
    macro_rules! each {
        ($($variant:ident)*) => {
            match tensor.elements() {
                $(ElementVec::$variant(values) => write_values(to, tensor.shape(), values),)*
            }
        };
    }
    each! { F32 I32 U32 F64 I64 U64 I16 U16 I8 U8 }
}

fn write_values<T>(writer: &mut impl Write, shape: &[u64], values: &[T]) -> std::io::Result<()>
where
    T: npyz::AutoSerialize + Copy,
{
    let options = npyz::WriteOptions::new().default_dtype().shape(shape);
    let mut npy = options.writer(writer).begin_nd()?;
    npy.extend(values.iter().copied())?;
    npy.finish()
}

/// Why a file gave no tensor.
#[derive(Debug)]
pub enum Problem {
    /// The file is not one that we take: what it is, to stand after the file's name.
    Content(String),
    /// The file could not be read.
    Io(std::io::Error),
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::InvalidData => Self::Content(format!("is not a NumPy file: {error}")),
            ErrorKind::UnexpectedEof => Self::Content("ends in the middle of its header".into()),
            _ => Self::Io(error),
        }
    }
}

/// Reads a tensor of numbers. `file_bytes`: how many bytes `reader` gives.
///
/// # Errors
/// See [`Problem`].
pub fn read(mut reader: impl Read, file_bytes: u64) -> Result<Tensor, Problem> {
    let header = read_header(&mut reader)?;
    let header_bytes = header.len() as u64;
    check_extents(&header)?;
    let npy = NpyFile::new(Cursor::new(header).chain(reader))?;
    let kind = element_kind(&npy.dtype())?;
    let shape = npy.shape().to_vec();
    // A vector, or a tensor of which at most one extent is above 1, is the same in both orders.
    if npy.order() == Order::Fortran && shape.iter().filter(|extent| **extent > 1).count() > 1 {
        return Err(Problem::Content(
            "is in Fortran order; expected C order (save numpy.ascontiguousarray(x))".into(),
        ));
    }
    let expected = shape.iter().product::<u64>().saturating_mul(kind.bytes() as u64);
    let found = file_bytes.saturating_sub(header_bytes);
    if found != expected {
        let what = if found < expected { "is cut off" } else { "goes on after its data" };
        return Err(Problem::Content(format!(
            "{what}: the shape {shape:?} takes {expected} bytes of data, and there are {found}"
        )));
    }
    /// Reads the elements, whatever their type is.
    macro_rules! each {
        ($($variant:ident)*) => {
            match kind {
                $(Kind::$variant => ElementVec::$variant(npy.into_vec()?),)*
            }
        };
    }
    let elements = each! { F32 I32 U32 F64 I64 U64 I16 U16 I8 U8 };
    Tensor::new(shape, elements).ok_or_else(|| Problem::Content("changed while it was read".into()))
}

/// Magic, version, length and text of the header.
fn read_header(reader: &mut impl Read) -> Result<Vec<u8>, Problem> {
    let mut start = [0; 8];
    reader.read_exact(&mut start).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => Problem::Content("is too short for a NumPy file".into()),
        _ => Problem::Io(error),
    })?;
    if !start.starts_with(b"\x93NUMPY") {
        return Err(Problem::Content("is not a NumPy file (.npy)".into()));
    }
    // Version 1 has a length of two bytes, later ones of four.
    let mut length = [0; 8];
    let length_bytes = if start[6] == 1 { 2 } else { 4 };
    reader.read_exact(&mut length[..length_bytes])?;
    let text_bytes = u64::from_le_bytes(length);
    if text_bytes > MAX_HEADER_BYTES {
        let what =
            format!("has a header of {text_bytes} bytes; expected at most {MAX_HEADER_BYTES}");
        return Err(Problem::Content(what));
    }
    let mut header = [&start[..], &length[..length_bytes]].concat();
    let before = header.len() as u64;
    reader.by_ref().take(text_bytes).read_to_end(&mut header)?;
    if header.len() as u64 - before < text_bytes {
        return Err(Problem::Content("ends in the middle of its header".into()));
    }
    Ok(header)
}

/// Checks that the product of all extents fits 64 bits. The crate that reads the header multiplies them without
/// looking, so that this has to come first; whatever else is wrong with the text is left to it.
fn check_extents(header: &[u8]) -> Result<(), Problem> {
    let text = String::from_utf8_lossy(header);
    let Some((_, shape)) = text.split_once("'shape'").or(text.split_once("\"shape\"")) else {
        return Ok(());
    };
    let shape: String =
        shape.chars().skip_while(|c| *c != '(').skip(1).take_while(|c| *c != ')').collect();
    let extents = shape.split(',').map(|extent| extent.trim().trim_end_matches('L'));
    // The largest element has 8 bytes.
    let mut product = 8_u64;
    for extent in extents.filter(|extent| !extent.is_empty()) {
        if extent.starts_with('-') {
            return Err(Problem::Content(format!(
                "has the shape ({shape}), with {extent} elements along a dimension; an extent is 0 or more"
            )));
        }
        let factor = extent.replace('_', "").parse::<u64>().unwrap_or(u64::MAX).max(1);
        product = product.checked_mul(factor).ok_or_else(|| {
            Problem::Content(format!("has the shape ({shape}), which is larger than memory"))
        })?;
    }
    Ok(())
}

/// The type of the elements, in either byte order.
fn element_kind(dtype: &DType) -> Result<Kind, Problem> {
    if let DType::Plain(plain) = dtype {
        match (plain.type_char(), plain.size_field()) {
            (TypeChar::Float, 4) => return Ok(Kind::F32),
            (TypeChar::Float, 8) => return Ok(Kind::F64),
            (TypeChar::Int, 8) => return Ok(Kind::I64),
            (TypeChar::Int, 4) => return Ok(Kind::I32),
            (TypeChar::Int, 2) => return Ok(Kind::I16),
            (TypeChar::Int, 1) => return Ok(Kind::I8),
            (TypeChar::Uint, 8) => return Ok(Kind::U64),
            (TypeChar::Uint, 4) => return Ok(Kind::U32),
            (TypeChar::Uint, 2) => return Ok(Kind::U16),
            (TypeChar::Uint, 1) => return Ok(Kind::U8),
            _ => {}
        }
    }
    Err(Problem::Content(format!(
        "has elements of type {}; expected float32 ('<f4'), float64, or integers of 8 to 64 bits",
        dtype.descr()
    )))
}

#[cfg(test)]
mod tests {
    use super::{ElementVec, Problem, Tensor, write_values};
    use std::string::String;
    use std::vec::Vec;
    use std::{format, vec};

    fn bytes<T: npyz::AutoSerialize + Copy>(shape: &[u64], values: &[T]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_values(&mut bytes, shape, values).unwrap();
        bytes
    }

    fn with_header(text: &str, data: usize) -> Vec<u8> {
        let length = u16::try_from(text.len()).unwrap().to_le_bytes();
        [&b"\x93NUMPY\x01\x00"[..], &length, text.as_bytes(), &vec![0; data]].concat()
    }

    fn read(bytes: &[u8]) -> Result<Tensor, String> {
        super::read(bytes, bytes.len() as u64).map_err(|problem| match problem {
            Problem::Content(what) => what,
            Problem::Io(error) => panic!("{error}"),
        })
    }

    #[test]
    fn what_was_written_is_read() {
        let tensor = read(&bytes(&[2, 3], &[1.5_f32, -2.0, 3.0, 4.0, 5.0, f32::NAN])).unwrap();
        assert_eq!(tensor.shape(), [2, 3]);
        assert!(matches!(tensor.elements(), ElementVec::F32(v) if v[1] == -2.0 && v[5].is_nan()));
        let tensor = read(&bytes(&[4], &[1_i32, -2, 3, i32::MIN])).unwrap();
        assert_eq!(tensor.elements(), &ElementVec::I32(vec![1, -2, 3, i32::MIN]));
    }

    #[test]
    fn every_type_of_numbers_comes_back() {
        for dtype in super::Kind::ALL {
            let elements = ElementVec::from_bytes(
                *dtype,
                &[1, 2, 3, 4, 5, 6, 7, 8, 255, 254, 0, 0, 0, 1, 0, 63],
            );
            let count = elements.count() as u64;
            let tensor = Tensor::new(vec![count], elements).unwrap();
            let mut file = Vec::new();
            super::write(&mut file, &tensor).unwrap();
            assert_eq!(read(&file).unwrap(), tensor, "{dtype}");
        }
    }

    #[test]
    fn other_types_are_named() {
        let half = "{'descr': '<f2', 'fortran_order': False, 'shape': (1,), }\n";
        let error = read(&with_header(half, 2)).unwrap_err();
        assert!(error.contains("'<f2'") && error.contains("float32"), "{error}");
        let object = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n";
        assert!(read(&with_header(object, 8)).unwrap_err().contains("'|O'"));
    }

    #[test]
    fn big_endian_files_are_read() {
        let header = "{'descr': '>i4', 'fortran_order': False, 'shape': (1,), }\n";
        let mut file = with_header(header, 4);
        *file.last_mut().unwrap() = 7;
        assert_eq!(read(&file).unwrap().elements(), &ElementVec::I32(vec![7]));
    }

    #[test]
    fn fortran_order_is_refused_where_it_matters() {
        let header =
            |shape| format!("{{'descr': '<f4', 'fortran_order': True, 'shape': {shape}, }}\n");
        let error = read(&with_header(&header("(2, 2)"), 16)).unwrap_err();
        assert!(error.contains("Fortran order") && error.contains("C order"), "{error}");
        assert!(read(&with_header(&header("(4,)"), 16)).is_ok());
        assert!(read(&with_header(&header("(1, 4)"), 16)).is_ok());
    }

    #[test]
    fn a_file_that_was_cut_says_how_much_is_there() {
        let file = bytes(&[3], &[1.0_f32, 2.0, 3.0]);
        let error = read(&file[..file.len() - 5]).unwrap_err();
        assert!(error.contains("12 bytes") && error.contains("there are 7"), "{error}");
        let longer = [&file[..], &[0]].concat();
        assert!(read(&longer).unwrap_err().contains("goes on after its data"));
        for length in 0..64 {
            read(&file[..length]).unwrap_err();
        }
    }

    #[test]
    fn shapes_that_overflow_are_refused_before_anything_multiplies_them() {
        let huge =
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n";
        assert!(read(&with_header(huge, 0)).unwrap_err().contains("larger than memory"));
        let negative = "{'descr': '<f4', 'fortran_order': False, 'shape': (-4, 128), }\n";
        let error = read(&with_header(negative, 0)).unwrap_err();
        assert!(error.contains("(-4, 128), with -4 elements along a dimension"), "{error}");
        let hidden =
            "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9999999999, 9999999999), }\n";
        assert!(read(&with_header(hidden, 0)).unwrap_err().contains("larger than memory"));
        let digits =
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,), }\n";
        assert!(read(&with_header(digits, 0)).unwrap_err().contains("larger than memory"));
    }

    #[test]
    fn anything_else_is_not_a_numpy_file() {
        assert!(read(b"").unwrap_err().contains("too short"));
        assert!(read(b"PK\x03\x04 and more than eight").unwrap_err().contains("not a NumPy file"));
        assert!(read(&with_header("{}\n", 0)).unwrap_err().contains("not a NumPy file"));
        assert!(read(&with_header("nonsense", 0)).unwrap_err().contains("not a NumPy file"));
        let long = [&b"\x93NUMPY\x02\x00"[..], &u32::MAX.to_le_bytes()].concat();
        assert!(read(&long).unwrap_err().contains("header of 4294967295 bytes"));
    }
}
