//! What is known of a session, as far as the order of eviction cares.

/// How soon a session's blocks go; the first goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Its session has ended or moved away.
    Released,
    /// Its session was expected back by now.
    Expired,
    /// Nobody has said anything.
    Plain,
    /// Its session is expected back soon.
    Kept,
}

impl Standing {
    /// All, those whose blocks go first before the others.
    pub const ALL: [Standing; STANDINGS] = [
        Standing::Released,
        Standing::Expired,
        Standing::Plain,
        Standing::Kept,
    ];

    /// Its name where people read it.
    pub fn name(self) -> &'static str {
        match self {
            Standing::Released => "released",
            Standing::Expired => "expired",
            Standing::Plain => "plain",
            Standing::Kept => "kept",
        }
    }
}

/// How many standings there are.
pub const STANDINGS: usize = 4;
