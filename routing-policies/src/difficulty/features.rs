//! Everything that the model weighs of one turn.

use super::concepts::{Met, concepts};
use super::text::{Kind, Normal, ends};
use super::{grams, shape};

/// Bytes at either end of a turn where people say what they want; between them lies what it is about.
const EDGE_BYTES: usize = 240;
/// What a piece between the ends weighs, in tenths of one at the ends.
const MIDDLE_TENTHS: i32 = 3;

/// A word or a run of characters of the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// A word's hash, or a run's bucket.
    pub id: u32,
    /// Whether it lies near one of the turn's ends.
    pub edge: bool,
    /// Which word of the text it is, or is of.
    at: u32,
}

impl Piece {
    /// What it weighs, in tenths.
    pub(super) fn tenths(&self) -> i32 {
        if self.edge { 10 } else { MIDDLE_TENTHS }
    }
}

/// What a turn looks like to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    /// One value per name of [`names`], each 0 to 1.
    pub dense: Vec<f32>,
    /// Its words in Latin letters.
    pub words: Vec<Piece>,
    /// Its runs of characters.
    pub runs: Vec<Piece>,
    /// How many words and numbers it has.
    pub count: u32,
    normal: Normal,
}

/// Names of [`Features::dense`], in the same order.
#[must_use]
pub fn names() -> Vec<String> {
    let shape = shape::NAMES.iter().map(|name| (*name).to_owned());
    let asks = concepts().names().iter().map(|name| format!("asks_{name}"));
    let mentions = concepts()
        .names()
        .iter()
        .map(|name| format!("mentions_{name}"));
    shape.chain(asks).chain(mentions).collect()
}

/// 0, 0.6, 0.8, 0.9, 1: the second time that something is met says less than the first.
fn met(times: u8) -> f32 {
    [0.0, 0.6, 0.8, 0.9, 1.0][usize::from(times.min(4))]
}

impl Features {
    /// Of a turn's text; no more than its two ends is read.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let (head, tail) = ends(text);
        let normal = Normal::of_ends((head, tail));
        let late = normal.text.len().saturating_sub(EDGE_BYTES);
        let edge = |at: usize| at < EDGE_BYTES || at >= late;
        let concepts = concepts();
        let asked = concepts.met(&normal, edge);
        let quantity = concepts.names().iter().position(|name| *name == "quantity");
        let quantity = quantity.map_or(Met::default(), |index| asked[index]);
        let shape = shape::features(text.len(), (head, tail), &normal, quantity);
        let mut dense = Vec::with_capacity(shape.len() + 2 * asked.len());
        dense.extend(shape);
        dense.extend(asked.iter().map(|found| met(found.edge)));
        dense.extend(asked.iter().map(|found| met(found.all)));
        let mut words = Vec::with_capacity(normal.words.len());
        // Three lengths of runs from nearly every character.
        let mut runs = Vec::with_capacity(3 * normal.text.len());
        let mut buffer = Vec::new();
        for (at, word) in (0..).zip(&normal.words) {
            let edge = edge(word.span.start);
            if word.kind == Kind::Letters {
                let id = grams::word(&normal, word);
                words.push(Piece { id, edge, at });
            }
            grams::runs(&normal, word, &mut buffer, |id| {
                runs.push(Piece { id, edge, at });
            });
        }
        Self {
            dense,
            words,
            runs,
            count: shape::words(&normal),
            normal,
        }
    }

    /// The word that the piece is, or is of.
    pub(super) fn word(&self, piece: &Piece) -> &str {
        let word = self.normal.words.get(piece.at as usize);
        word.map_or("", |word| &self.normal.text[word.span.clone()])
    }
}
