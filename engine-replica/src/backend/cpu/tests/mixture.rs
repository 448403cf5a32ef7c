//! A mixture's operations equal the reference, and a row's result does not depend on the rows beside it.

use super::*;
use crate::backend::MixtureShape;

/// A whole feed-forward half: choose, share out, multiply, combine. Everything in between is read back too.
struct Mixture {
    shape: MixtureShape,
    /// (experts) weights (width, width) of one or more parts each.
    experts: Vec<Vec<Tensor>>,
    /// (rows, experts)
    logits: Vec<f32>,
    /// (rows, width)
    x: Vec<f32>,
}

impl Mixture {
    fn rows(&self) -> usize {
        self.logits.len() / self.shape.experts
    }

    fn width(&self) -> usize {
        self.x.len() / self.rows()
    }

    /// The combined rows, and everything on the way there.
    fn compute<B: Backend>(&self, b: &mut B) -> (Vec<f32>, Vec<f32>) {
        let (rows, width) = (self.rows(), self.width());
        let views: Vec<Vec<_>> = self
            .experts
            .iter()
            .map(|parts| parts.iter().map(Tensor::view).collect())
            .collect();
        let weights = b.upload_experts(&views).unwrap();
        let mut logits = buffer(b, rows, &self.logits);
        let x = buffer(b, rows, &self.x);
        let mut routing = b.new_routing(rows, self.shape).unwrap();
        b.route(rows, 1, &mut logits, &mut routing);
        let slots = rows * self.shape.chosen;
        let mut shared = b.new_buffer(slots, width).unwrap();
        b.scatter(&routing, &x, &mut shared);
        let mut given = b.new_buffer(slots, width).unwrap();
        b.expert_matmul(&routing, &weights, &shared, &mut given);
        let mut out = b.new_buffer(rows, width).unwrap();
        b.combine(&routing, &given, &mut out);
        let mut between = read(b, rows, &logits);
        between.extend(read(b, slots, &shared));
        between.extend(read(b, slots, &given));
        let mut counts = Vec::new();
        b.take_expert_counts(&mut routing, &mut counts).unwrap();
        assert_eq!(counts.len(), self.shape.layers * self.shape.experts);
        assert_eq!(counts.iter().sum::<u32>() as usize, slots);
        between.extend(counts.iter().map(|&count| count as f32));
        counts.clear();
        b.take_expert_counts(&mut routing, &mut counts).unwrap();
        assert!(counts.iter().all(|&count| count == 0), "taken once");
        (read(b, rows, &out), between)
    }
}

impl Case for Mixture {
    fn run<B: Backend>(&self, backend: &mut B) -> Vec<f32> {
        let (mut out, between) = self.compute(backend);
        out.extend(between);
        out
    }
}

fn mixture(
    random: &mut Random,
    rows: usize,
    (experts, chosen): (usize, usize),
    width: usize,
) -> Mixture {
    let shape = MixtureShape {
        layers: 2,
        experts,
        chosen,
        renormalise: random.below(2) == 0,
    };
    let types = if width.is_multiple_of(32) { 6 } else { 3 };
    let weights = (0..experts).map(|_| {
        let first = 1 + random.below(width - 1);
        [first, width - first]
            .map(|part| random.tensor(DTYPES[random.clone().below(types)], part, width, 1.0))
            .into()
    });
    let experts_weights = weights.collect();
    Mixture {
        shape,
        experts: experts_weights,
        // Few values, so that many are equal.
        logits: (0..rows * experts)
            .map(|_| random.below(7) as f32 - 3.0)
            .collect(),
        x: random.floats(rows * width),
    }
}

#[test]
fn a_mixture_equals_the_reference_for_many_shapes_and_equal_logits() {
    let mut random = Random(11);
    for sizes in [(1, 1), (2, 1), (5, 5), (8, 2), (16, 3), (33, 8), (130, 9)] {
        for (rows, width) in [(1, 32), (2, 33), (7, 64), (40, 20), (150, 32)] {
            let case = mixture(&mut random, rows, sizes, width);
            check(&case, &format!("{rows} rows of {width} to {sizes:?}"));
        }
    }
}

#[test]
fn all_rows_may_go_to_one_expert() {
    let mut random = Random(12);
    let mut case = mixture(&mut random, 50, (9, 2), 32);
    for logits in case.logits.chunks_exact_mut(9) {
        (logits[4], logits[7]) = (10.0, 9.0);
    }
    check(&case, "50 rows to experts 4 and 7");
}

#[test]
fn equal_probabilities_are_chosen_by_number_and_weights_follow_the_shape() {
    for renormalise in [false, true] {
        let shape = MixtureShape {
            layers: 1,
            experts: 4,
            chosen: 2,
            renormalise,
        };
        let mut b = Reference;
        let mut logits = buffer(&mut b, 1, &[1.0, 3.0, 3.0, 3.0]);
        let mut routing = b.new_routing(1, shape).unwrap();
        b.route(1, 0, &mut logits, &mut routing);
        assert_eq!(routing.experts, [1, 2]);
        let sum: f32 = routing.weights.iter().sum();
        let expect = if renormalise { 1.0 } else { 0.6376 };
        assert!((sum - expect).abs() < 1e-3, "{sum}");
    }
}

#[test]
fn a_row_of_nan_leaves_the_other_rows_alone() {
    let mut random = Random(13);
    let case = mixture(&mut random, 21, (6, 3), 32);
    for broken in [f32::NAN, f32::INFINITY] {
        let mut spoilt = Mixture {
            shape: case.shape,
            experts: case.experts.clone(),
            logits: case.logits.clone(),
            x: case.x.clone(),
        };
        spoilt.logits[6..9].fill(broken);
        spoilt.x[32..64].fill(broken);
        check(&spoilt, "a broken row");
        for (name, mut cpu) in backends() {
            let (want, mut got) = (case.compute(&mut cpu).0, spoilt.compute(&mut cpu).0);
            got[32..64].copy_from_slice(&want[32..64]);
            assert_same_bits(&got, &want, &name);
        }
    }
}

#[test]
fn a_row_alone_has_the_bits_that_it_has_among_others() {
    let mut random = Random(14);
    let case = mixture(&mut random, 60, (12, 4), 32);
    for (name, mut cpu) in backends() {
        let together = case.compute(&mut cpu).0;
        for row in [0, 17, 59] {
            let alone = Mixture {
                shape: case.shape,
                experts: case.experts.clone(),
                logits: case.logits[row * 12..][..12].to_vec(),
                x: case.x[row * 32..][..32].to_vec(),
            };
            let alone = alone.compute(&mut cpu).0;
            assert_same_bits(&alone, &together[row * 32..][..32], &name);
        }
    }
}
