//! Conversions between layouts and element types: each is a small workload, which the device runs as it runs any program. Nothing comes
//! to the host.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use pto_workload::Workload;
use pto_workload::program::{Format, Program, TensorLayout};

use super::error::StitchError;
use super::loaded::LoadedProgram;
use super::stitcher_core::StitcherCore;
use super::tensor::Form;

/// Elements of a tile that a conversion moves at once, at most.
const TILE_ELEMENTS: u64 = 4096;
/// Columns of a tile where no format says how many.
const TILE_COLUMNS: u64 = 64;
/// The names of both tensors.
pub(super) const SOURCE: &str = "X";
pub(super) const TARGET: &str = "Y";

/// The conversions that were needed so far, each loaded once.
pub(super) struct Conversions {
    shared: Arc<StitcherCore>,
    loaded: Mutex<HashMap<(Form, Form), LoadedProgram>>,
}

impl Conversions {
    pub(super) fn new(shared: &Arc<StitcherCore>) -> Self {
        Self { shared: Arc::clone(shared), loaded: Mutex::default() }
    }

    /// The program that converts `from` to `to`.
    pub(super) fn program(&self, from: &Form, to: &Form) -> Result<LoadedProgram, StitchError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (from.clone(), to.clone());
        if let Some(program) = loaded.get(&key) {
            return Ok(program.clone());
        }
        let program = LoadedProgram::load(&self.shared, program(from, to)?, &[])?;
        loaded.insert(key, program.clone());
        Ok(program)
    }
}

/// A side of a conversion: a matrix, or several of them, one for each index of the leading dimensions.
struct ConversionSide<'f> {
    form: &'f Form,
    /// Extents of the leading dimensions.
    leading: &'f [u64],
    /// Rows and columns of a matrix.
    extents: [u64; 2],
}

impl<'f> ConversionSide<'f> {
    /// A form as one matrix; `None`: it has more dimensions and strides.
    fn matrix(form: &'f Form) -> Option<Self> {
        let extents = match (form.shape.as_slice(), &form.layout.format) {
            ([n], _) => [1, *n],
            ([m, n], _) => [*m, *n],
            (shape, Format::RowMajor) => {
                let last = *shape.last()?;
                [shape.iter().product::<u64>() / last, last]
            }
            _ => return None,
        };
        Some(Self { form, leading: &[], extents })
    }

    /// A form of three dimensions or more as its matrices; `None`: it has tiles, which are those of one matrix, or fewer dimensions.
    fn matrices(form: &'f Form) -> Option<Self> {
        match (form.shape.as_slice(), &form.layout.format) {
            ([leading @ .., m, n], Format::RowMajor | Format::Strided(_)) => {
                Some(Self { form, leading, extents: [*m, *n] })
            }
            _ => None,
        }
    }

    /// Both sides of a conversion, in the same way.
    fn both(from: &'f Form, to: &'f Form) -> Option<[Self; 2]> {
        let of = |side: fn(&'f Form) -> Option<Self>| Some([side(from)?, side(to)?]);
        of(Self::matrix).or_else(|| of(Self::matrices))
    }

    /// Converts to the workload's type.
    fn shape(&self) -> Vec<u64> {
        [self.leading, self.extents.as_slice()].concat()
    }

    /// The columns of a tile of the format; `None`: the format has no tiles.
    fn tile_columns(&self) -> Option<u64> {
        match self.form.layout.format {
            Format::Tiles { cols, .. } => Some(cols.into()),
            _ => None,
        }
    }

    /// The tensor in the form of the workload: its extents, and the layout with which the program binds it.
    fn described(&self) -> Option<(Vec<u64>, TensorLayout)> {
        let layout = self.form.layout.clone();
        let format = match (&layout.format, self.form.shape.as_slice()) {
            // A vector is a row.
            (Format::Strided(strides), [n]) => {
                Format::Strided(vec![strides[0].saturating_mul(*n), strides[0]])
            }
            (format, _) => format.clone(),
        };
        let shape = self.shape();
        let layout = layout.with_format(format.normal(&shape));
        Some((layout.storage_shape(&shape)?, layout))
    }

    /// The view of a tile of `rows` x `cols` at the loop variables `m` and `n`. A strided view ends at the matrix by itself; tiles have
    /// elements beyond the matrix, which the view leaves out.
    fn view(&self, name: &str, [rows, cols]: [u64; 2]) -> String {
        let Some(width) = self.tile_columns() else {
            let leading: String = (0..self.leading.len()).map(|dim| format!("i{dim}, ")).collect();
            return format!("{name}[{leading}m * {rows} for {rows}, n * {cols} for {cols}]");
        };
        let counted = |var: &str, step: u64, extent: u64| match extent % step {
            0 => step.to_string(),
            rest => format!("({var} == {} ? {rest} : {step})", extent / step),
        };
        let [of_rows, of_cols] = self.extents;
        let (rows_there, cols_there) = (counted("m", rows, of_rows), counted("n", cols, of_cols));
        format!(
            "{name}[n * {cols} / {width}, m * {rows} for {rows_there}, n * {cols} % {width} for {cols_there}]"
        )
    }
}

/// The program that converts `from` to `to`.
fn program(from: &Form, to: &Form) -> Result<Program, StitchError> {
    let refused = |why| StitchError::Conversion { from: from.to_string(), to: to.to_string(), why };
    if from.shape != to.shape {
        return Err(refused("the extents are others; a conversion keeps them"));
    }
    let tiled = "tiles are those of a matrix";
    let [x, y] = ConversionSide::both(from, to).ok_or_else(|| refused(tiled))?;
    let (Some((x_stored, x_layout)), Some((y_stored, y_layout))) = (x.described(), y.described())
    else {
        return Err(refused("the layout does not fit the extents"));
    };
    let tile = tile(&x, &y);
    let text = text((&x, &x_stored), (&y, &y_stored), tile);
    let broken = "the conversion is not a workload that a device takes";
    let checked = Workload::parse(&text).ok().and_then(|workload| workload.check().ok());
    let program = Program::of_workload(&checked.ok_or_else(|| refused(broken))?)?;
    let program = program.with_tensor(SOURCE, |tensor| {
        (tensor.shape, tensor.layout) = (x.shape(), x_layout);
    })?;
    // Every element is written but the padding of tiles, which `ProgramStream::convert` has filled.
    Ok(program.with_tensor(TARGET, |tensor| {
        (tensor.shape, tensor.layout) = (y.shape(), y_layout);
        tensor.begins_with_zeros = false;
    })?)
}

/// Rows and columns of the tile that is moved at once.
fn tile(x: &ConversionSide<'_>, y: &ConversionSide<'_>) -> [u64; 2] {
    let cols = match (x.tile_columns(), y.tile_columns()) {
        (Some(a), Some(b)) => common_divisor(a, b),
        (Some(cols), None) | (None, Some(cols)) => cols,
        (None, None) => x.extents[1].min(TILE_COLUMNS),
    };
    [(TILE_ELEMENTS / cols).clamp(1, x.extents[0]), cols]
}

const fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The text of the workload.
fn text(
    (x, x_stored): (&ConversionSide<'_>, &[u64]),
    (y, y_stored): (&ConversionSide<'_>, &[u64]),
    tile: [u64; 2],
) -> String {
    let [rows, cols] = tile;
    let (from, to) = (x.form.dtype, y.form.dtype);
    let [outer, inner] = [1, 0].map(|dim: usize| y.extents[dim].div_ceil(tile[dim]));
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{line}").unwrap_or_default();
    line("workload convert {".to_owned());
    line("schedule round_robin workers 1 window 8192 stall".to_owned());
    line(format!("tensor {SOURCE} : {from}{x_stored:?}"));
    line(format!("tensor {TARGET} : {to}{y_stored:?}"));
    line(format!("kernel convert(x: in {from}[{rows}, {cols}], y: out {to}[{rows}, {cols}]) {{"));
    line(format!("%0 = load x : {from}[{rows}, {cols}]"));
    if from == to {
        line("store y, %0".to_owned());
    } else {
        line(format!("%1 = convert %0 : {to}[{rows}, {cols}]"));
        line("store y, %1".to_owned());
    }
    line("}".to_owned());
    let (source, target) = (x.view(SOURCE, tile), y.view(TARGET, tile));
    let leading: Vec<_> = x.leading.iter().enumerate().collect();
    let loops: String = leading
        .iter()
        .map(|(dim, extent)| format!("parallel i{dim} in dense {extent} {{ "))
        .collect();
    let indices: String = leading.iter().map(|(dim, _)| format!("i{dim}, ")).collect();
    line(format!("do {loops}parallel n in dense {outer} {{ parallel m in dense {inner} {{"));
    line(format!("convert[{indices}n, m](x = {source}, y = {target})"));
    line("} ".repeat(leading.len() + 3));
    text
}
