//! Families of models: how each marks its reasoning in plain text. The rows are data, in `families.toml`.

mod pick;
mod read;

pub use read::{Family, FamilyError, Grammar, History, MARKER_BYTES_MAX, Opener, Switch, Tags};

/// The rows that come with this crate.
const BUILT_IN: &str = include_str!("../../families.toml");

/// A sound table of families.
#[derive(Clone, Debug)]
pub struct Families {
    rows: Vec<Family>,
    /// How many of them, from the first on, a policy file brought.
    own: usize,
}

impl Families {
    /// The families that come with this crate.
    ///
    /// # Errors
    /// Every problem of the file, which a test keeps free of them.
    pub fn built_in() -> Result<Self, FamilyError> {
        Self::parse(BUILT_IN)
    }

    /// The families of a file that looks like `families.toml`.
    ///
    /// # Errors
    /// Every problem of the file.
    pub fn parse(text: &str) -> Result<Self, FamilyError> {
        let rows = read::read(text)?;
        Ok(Self { rows, own: 0 })
    }

    /// The families of this crate with the `[[families]]` of a policy file: one of the same name takes the other's place, and a
    /// pattern of the file's counts more than all others.
    ///
    /// # Errors
    /// Every problem of the file's families.
    pub fn with_policy(text: &str) -> Result<Self, FamilyError> {
        let mut rows = read::read_policy(text)?;
        let own = rows.len();
        let others = Self::built_in()?.rows;
        let replaced = |other: &Family| {
            let name = plain(&other.name);
            rows.iter()
                .any(|row| row.names().any(|own| plain(own) == name))
        };
        let kept: Vec<Family> = others
            .into_iter()
            .filter(|other| !replaced(other))
            .collect();
        rows.extend(kept);
        Ok(Self { rows, own })
    }

    /// All families, in the file's order.
    #[must_use]
    pub fn rows(&self) -> &[Family] {
        &self.rows
    }

    /// The family of this name or alias; small and capital letters are equal, and so are `-`, `_` and no sign.
    ///
    /// # Errors
    /// Where there is none: the names that there are.
    pub fn named(&self, name: &str) -> Result<&Family, FamilyError> {
        let wanted = plain(name);
        let found = self
            .rows
            .iter()
            .find(|family| family.names().any(|name| plain(name) == wanted));
        found.ok_or_else(|| {
            let names: Vec<&str> = self.rows.iter().map(|family| &*family.name).collect();
            FamilyError::new(format!(
                "family `{name}`: unknown; name one of {}",
                names.join(", ")
            ))
        })
    }

    /// The family whose marks a chat template has, all of them; among several the one with the most text of marks, none where two are
    /// equal.
    #[must_use]
    pub fn of_template(&self, template: &str) -> Option<&Family> {
        let (own, others) = self.rows.split_at(self.own);
        pick::by_template(own, template).or_else(|| pick::by_template(others, template))
    }

    /// The family whose pattern fits the whole of this model's name, owner left out. Among several the one with the most text of its own;
    /// none where two are equal: a guess would put answers into the wrong field.
    #[must_use]
    pub fn of_model(&self, model: &str) -> Option<&Family> {
        let (own, others) = self.rows.split_at(self.own);
        pick::best(own, model).or_else(|| pick::best(others, model))
    }
}

/// A name without what spellings differ in.
fn plain(name: &str) -> String {
    let kept = name.chars().filter(|letter| !matches!(letter, '-' | '_'));
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests;
