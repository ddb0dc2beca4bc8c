//! What the reference computes with: numbers in `f64`, by their indices.

use pto_operators::{DType, Tensor, TensorType};

/// A dense array of `f64`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<f64>,
}

impl Array {
    pub(crate) fn of(tensor: &Tensor) -> Self {
        Self { shape: tensor.shape().to_vec(), data: tensor.to_doubles() }
    }

    /// An element for each index.
    pub(crate) fn build(shape: &[usize], mut element: impl FnMut(&[usize]) -> f64) -> Self {
        let data = indices(shape).iter().map(|index| element(index)).collect();
        Self { shape: shape.to_vec(), data }
    }

    pub(crate) fn at(&self, index: &[usize]) -> f64 {
        assert_eq!(index.len(), self.shape.len());
        let place = index.iter().zip(&self.shape).fold(0, |place, (at, extent)| {
            assert!(at < extent, "index {index:?} of {:?}", self.shape);
            place * extent + at
        });
        self.data[place]
    }

    /// The element that is broadcast to an index of more dimensions.
    pub(crate) fn broadcast(&self, index: &[usize]) -> f64 {
        let own = &index[index.len() - self.shape.len()..];
        let own: Vec<_> = own
            .iter()
            .zip(&self.shape)
            .map(|(at, extent)| if *extent == 1 { 0 } else { *at })
            .collect();
        self.at(&own)
    }
}

/// All indices, in order.
pub(crate) fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for extent in shape {
        all = all
            .iter()
            .flat_map(|index: &Vec<usize>| {
                (0..*extent).map(move |at| [index.as_slice(), &[at]].concat())
            })
            .collect();
    }
    all
}

/// A tensor of these numbers, rounded to the type.
pub(crate) fn tensor(dtype: DType, shape: &[usize], data: &[f64]) -> Tensor {
    let bytes: Vec<u8> = data.iter().flat_map(|x| bytes_of(dtype, *x)).collect();
    Tensor::from_bytes(TensorType::new(dtype, shape), bytes).unwrap()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of tests fit")]
fn bytes_of(dtype: DType, x: f64) -> Vec<u8> {
    match dtype {
        DType::Bool => vec![u8::from(x != 0.0)],
        DType::F16 => half::f16::from_f64(x).to_ne_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f64(x).to_ne_bytes().to_vec(),
        DType::F32 => (x as f32).to_ne_bytes().to_vec(),
        DType::F64 => x.to_ne_bytes().to_vec(),
        DType::I8 => (x as i8).to_ne_bytes().to_vec(),
        DType::I16 => (x as i16).to_ne_bytes().to_vec(),
        DType::I32 => (x as i32).to_ne_bytes().to_vec(),
        DType::I64 => (x as i64).to_ne_bytes().to_vec(),
        DType::U8 => (x as u8).to_ne_bytes().to_vec(),
        DType::U16 => (x as u16).to_ne_bytes().to_vec(),
        DType::U32 => (x as u32).to_ne_bytes().to_vec(),
        DType::U64 => (x as u64).to_ne_bytes().to_vec(),
    }
}

/// Random numbers for tests (xorshift).
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        (0..8).for_each(|_| {
            rng.next();
        });
        rng
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From `low` to `high`, both included.
    pub(crate) fn range(&mut self, low: usize, high: usize) -> usize {
        low + usize::try_from(self.next() % (high - low + 1) as u64).unwrap()
    }

    pub(crate) fn signed(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.next() % (high - low + 1).unsigned_abs()).unwrap()
    }

    pub(crate) fn is(&mut self, of: usize) -> bool {
        self.range(1, of) == 1
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.range(0, from.len() - 1)].clone()
    }

    pub(crate) fn real(&mut self, low: f64, high: f64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let unit = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        low + (high - low) * unit
    }

    /// Extents: so many, each from `low` to `high`.
    pub(crate) fn shape(&mut self, rank: usize, low: usize, high: usize) -> Vec<usize> {
        (0..rank).map(|_| self.range(low, high)).collect()
    }

    /// A tensor of numbers that every type holds exactly or nearly.
    pub(crate) fn tensor(&mut self, dtype: DType, shape: &[usize]) -> Tensor {
        let count = shape.iter().product();
        let data: Vec<f64> = (0..count)
            .map(|_| match dtype {
                DType::Bool => f64::from(u8::from(self.is(2))),
                dtype if dtype.is_float() => self.real(-4.0, 4.0),
                dtype if dtype.is_unsigned() => {
                    f64::from(u32::try_from(self.range(0, 11)).unwrap())
                }
                _ => f64::from(i32::try_from(self.signed(-7, 7)).unwrap()),
            })
            .collect();
        tensor(dtype, shape, &data)
    }
}
