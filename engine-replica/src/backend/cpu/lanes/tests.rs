//! Every instruction set here gives the scalar functions' bits.

use super::*;
use half::{bf16, f16};

/// Runs one operation on all lanes and keeps the result.
struct Apply<'a, O: Operation> {
    operation: O,
    out: &'a mut [f32; LANES],
}

trait Operation {
    fn apply<L: Lanes>(&self, lanes: L) -> L::F;
    fn scalar(&self, lane: usize) -> f32;
}

impl<O: Operation> Kernel for Apply<'_, O> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        lanes.store(self.operation.apply(lanes), self.out);
    }
}

#[track_caller]
fn check(operation: impl Operation + Copy) {
    for isa in Isa::available() {
        let mut out = [0.0; LANES];
        isa.run(Apply {
            operation,
            out: &mut out,
        });
        for (lane, got) in out.iter().enumerate() {
            let want = operation.scalar(lane);
            let equal = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
            assert!(equal, "{isa:?} lane {lane}: {got} is not {want}");
        }
    }
}

/// Ordinary, extreme and broken values.
const XS: [f32; LANES] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.3,
    -17.25,
    88.0,
    90.0,
    -87.3,
    -90.0,
    1e-30,
    3e38,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    12.5,
];

macro_rules! operation {
    ($name:ident, |$lanes:ident| $vector:expr, |$lane:ident| $scalar:expr) => {
        #[derive(Clone, Copy)]
        struct $name;
        impl Operation for $name {
            #[inline(always)]
            fn apply<L: Lanes>(&self, $lanes: L) -> L::F {
                $vector
            }
            fn scalar(&self, $lane: usize) -> f32 {
                $scalar
            }
        }
    };
}

fn reversed() -> [f32; LANES] {
    let mut xs = XS;
    xs.reverse();
    xs
}

operation!(Exp, |l| l.exp(l.load(&XS)), |i| numeric::exp(XS[i]));
operation!(
    Greater,
    |l| l.greater(l.load(&XS), l.load(&reversed())),
    |i| numeric::greater(XS[i], reversed()[i])
);
operation!(
    Lesser,
    |l| l.lesser(l.load(&XS), l.load(&reversed())),
    |i| numeric::lesser(XS[i], reversed()[i])
);
operation!(
    Fma,
    |l| l.fma(l.load(&XS), l.load(&reversed()), l.splat(0.1)),
    |i| XS[i].mul_add(reversed()[i], 0.1)
);
operation!(
    Arithmetic,
    |l| {
        let (x, y) = (l.load(&XS), l.load(&reversed()));
        l.div(l.mul(l.add(x, y), l.sub(x, y)), l.splat(3.0))
    },
    |i| {
        let (x, y) = (XS[i], reversed()[i]);
        (x + y) * (x - y) / 3.0
    }
);
operation!(Half, |l| l.load_f16(&HALVES), |i| f16::from_bits(HALVES[i])
    .to_f32());
operation!(Brain, |l| l.load_bf16(&HALVES), |i| bf16::from_bits(
    HALVES[i]
)
.to_f32());
operation!(Bytes, |l| l.load_i8(&BYTES), |i| f32::from(BYTES[i]));
operation!(
    Nibbles,
    |l| {
        // The third nibble.
        let (_, words) = l.next_nibble(l.load_words(&WORDS));
        let (_, words) = l.next_nibble(words);
        l.next_nibble(words).0
    },
    |i| (WORDS[i] >> 8 & 15) as f32
);

/// Zeros, subnormals, ordinary numbers, infinities and NaN of both 16-bit formats.
const HALVES: [u16; LANES] = [
    0, 0x8000, 1, 0x8001, 0x03ff, 0x3c00, 0xbc00, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x3f80, 0x4049,
    0x7f80, 0x0080, 0x1234,
];
const BYTES: [i8; LANES] = [
    0, 1, -1, 127, -128, 2, 3, 4, 5, 6, -7, -8, -9, 10, 100, -100,
];
const WORDS: [u32; LANES] = [
    0,
    u32::MAX,
    0x7654_3210,
    0x8765_4321,
    0x0f00,
    0x0100,
    0x0800,
    0x0700,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
];

#[test]
fn every_operation_rounds_as_the_scalar_one() {
    check(Exp);
    check(Greater);
    check(Lesser);
    check(Fma);
    check(Arithmetic);
    check(Half);
    check(Brain);
    check(Bytes);
    check(Nibbles);
}
