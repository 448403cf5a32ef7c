//! What becomes of a lane that the rules chose when the client's wish and the session's past have had their say.

use std::fmt;

use super::{Effort, Lane, LaneChoice, Lanes, Pool, Wishes};

/// What a client asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish<'a> {
    /// A lane by its name.
    pub lane: Option<&'a str>,
    /// Thinking, or none.
    pub thinking: Option<bool>,
    /// Most tokens of thinking; [`NO_LIMIT`] where it asks for no limit.
    pub budget: Option<u64>,
    /// How hard to think.
    pub effort: Option<Effort>,
}

/// A budget without a limit.
pub const NO_LIMIT: u64 = u64::MAX;

/// What a session did before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// The lane of its last request, by its place in the file.
    pub lane: Option<usize>,
    /// The request goes on with what a tool returned: no new turn.
    pub tool_loop: bool,
    /// The model's template writes the effort first: another one would make the whole conversation new to the replica's cache.
    pub effort_in_head: bool,
    /// The rules saw the difficulty of an earlier turn, from which this one's differs by less than the margin.
    pub steady: bool,
}

/// Why it is this lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneReason {
    /// No rule claims the request.
    FirstLane,
    /// A rule that does not ask the difficulty.
    Rule,
    /// The difficulty of the turn.
    Difficulty,
    /// The difficulty of an earlier turn of the session, from which this one's differs too little.
    DifficultyKept,
    /// The request goes on with what a tool returned.
    ToolLoop,
    /// The session began with an effort that stands at the prompt's head.
    EffortKept,
    /// The client named it.
    LaneNamed,
    /// The client's wish.
    Wish,
    /// The client wished for more than its lane gives.
    WishCapped,
}

impl LaneReason {
    /// All, in the order of documents.
    pub const ALL: [Self; 9] = [
        Self::FirstLane,
        Self::Rule,
        Self::Difficulty,
        Self::DifficultyKept,
        Self::ToolLoop,
        Self::EffortKept,
        Self::LaneNamed,
        Self::Wish,
        Self::WishCapped,
    ];

    /// The word in headers and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FirstLane => "first_lane",
            Self::Rule => "rule",
            Self::Difficulty => "difficulty",
            Self::DifficultyKept => "difficulty_kept",
            Self::ToolLoop => "tool_loop",
            Self::EffortKept => "effort_kept",
            Self::LaneNamed => "lane_named",
            Self::Wish => "wish",
            Self::WishCapped => "wish_capped",
        }
    }
}

/// The lane of a request, and what it comes to for this one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settled<'p> {
    /// The lane.
    pub lane: &'p Lane,
    /// Its place in the file.
    pub index: usize,
    /// Its pool; `None` is all replicas.
    pub pool: Option<&'p Pool>,
    /// Why it is this one.
    pub reason: LaneReason,
    /// Whether the model shall think; `None` leaves that to it.
    pub thinking: Option<bool>,
    /// Most tokens of thinking; `None` is no limit of the lane's or the client's.
    pub budget: Option<u64>,
    /// How hard it shall think; `None` where neither says.
    pub effort: Option<Effort>,
    /// Whether the client gets less than it wished for.
    pub capped: bool,
}

/// A wish that the policy refuses, or one for something that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A lane that the policy does not have, with those that clients may name.
    NoLane(String, String),
    /// A lane that clients may not ask for.
    Lane(String),
    /// Thinking, or none, in a lane that does the other.
    Thinking(String, bool),
    /// More tokens of thinking than the lane's most.
    Budget(String, u64),
    /// A greater effort than the lane's.
    Effort(String, Effort),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLane(lane, known) => write!(
                f,
                "x-pinion-lane asks for a lane `{lane}`, and there is none; the routing policy has {known}"
            ),
            Self::Lane(lane) => write!(
                f,
                "the routing policy does not let clients ask for the lane `{lane}`; leave out x-pinion-lane"
            ),
            Self::Thinking(lane, wanted) => {
                let (asked, does) = if *wanted {
                    ("thinking", "does not think")
                } else {
                    ("no thinking", "thinks")
                };
                write!(
                    f,
                    "the request asks for {asked}, and its lane `{lane}` {does} and takes no wishes; leave that out"
                )
            }
            Self::Budget(lane, most) => write!(
                f,
                "the request asks for more thinking than the {most} tokens of its lane `{lane}`, which takes no greater wish; ask for less"
            ),
            Self::Effort(lane, most) => write!(
                f,
                "the request asks for a greater effort than its lane `{lane}` gives; expected at most `{most}`"
            ),
        }
    }
}

impl Lane {
    /// How much it makes a model think, to be compared.
    fn depth(&self) -> (u8, Option<Effort>) {
        let thinking = match self.thinking {
            Some(false) => 0,
            None => 1,
            Some(true) => 2,
        };
        (thinking, self.effort)
    }
}

impl Lanes {
    /// The lane that holds, of the one that the rules chose.
    ///
    /// # Errors
    /// The lane takes no such wish.
    pub fn settle<'p>(
        &'p self,
        choice: &LaneChoice<'p>,
        wish: &Wish<'_>,
        past: &Past,
    ) -> Result<Settled<'p>, Refused> {
        let (by_rules, reason) = self.by_rules(choice, past);
        let mut to = Settled {
            lane: by_rules,
            index: 0,
            pool: None,
            reason,
            thinking: None,
            budget: None,
            effort: None,
            capped: false,
        };
        self.named(&mut to, wish)?;
        self.thinking(&mut to, wish)?;
        to.budget = budget(&mut to, wish)?;
        to.effort = effort(&mut to, wish)?;
        to.pool = self.pool(to.lane);
        let place = self.lanes.iter().position(|lane| lane.name == to.lane.name);
        to.index = place.unwrap_or(0);
        Ok(to)
    }

    fn by_rules<'p>(&'p self, choice: &LaneChoice<'p>, past: &Past) -> (&'p Lane, LaneReason) {
        let held = past.lane.and_then(|place| self.lanes.get(place));
        if let Some(held) = held {
            if past.tool_loop {
                return (held, LaneReason::ToolLoop);
            }
            let changes = held.name != choice.lane.name;
            if past.effort_in_head && changes && choice.lane.depth() <= held.depth() {
                return (held, LaneReason::EffortKept);
            }
        }
        let asked = choice.difficulty.is_some();
        let reason = match choice.rule {
            Some(rule) if !rule.when.asks_difficulty() => LaneReason::Rule,
            _ if asked && past.steady => LaneReason::DifficultyKept,
            _ if asked => LaneReason::Difficulty,
            _ => LaneReason::FirstLane,
        };
        (choice.lane, reason)
    }

    fn named<'p>(&'p self, to: &mut Settled<'p>, wish: &Wish<'_>) -> Result<(), Refused> {
        let Some(name) = wish.lane else {
            return Ok(());
        };
        let Some(named) = self.lanes.iter().find(|lane| &*lane.name == name) else {
            let known = self
                .lanes
                .iter()
                .filter(|lane| lane.wishes != Wishes::Refuse);
            let known: Vec<String> = known.map(|lane| format!("`{}`", lane.name)).collect();
            return Err(Refused::NoLane(name.to_owned(), known.join(", ")));
        };
        match named.wishes {
            _ if named.name == to.lane.name => {}
            Wishes::Refuse => return Err(Refused::Lane(name.to_owned())),
            Wishes::Cap if named.depth() > to.lane.depth() => cap(to),
            Wishes::Cap | Wishes::Honour => {
                (to.lane, to.reason) = (named, LaneReason::LaneNamed);
            }
        }
        Ok(())
    }

    fn thinking<'p>(&'p self, to: &mut Settled<'p>, wish: &Wish<'_>) -> Result<(), Refused> {
        to.thinking = to.lane.thinking.or(wish.thinking);
        let Some(wanted) = wish.thinking.filter(|wanted| Some(*wanted) != to.thinking) else {
            return Ok(());
        };
        match to.lane.wishes {
            Wishes::Refuse => return Err(Refused::Thinking(to.lane.name.to_string(), wanted)),
            Wishes::Cap if wanted => cap(to),
            Wishes::Cap | Wishes::Honour => {
                // The lane that is made for it, at the same replicas where there is one; a lane that was named stays.
                let fits =
                    |lane: &&Lane| lane.thinking == Some(wanted) && lane.wishes != Wishes::Refuse;
                let all = || self.lanes.iter().filter(fits);
                let near = all().find(|lane| lane.pool == to.lane.pool);
                let other = near.or_else(|| all().next());
                to.lane = other.filter(|_| wish.lane.is_none()).unwrap_or(to.lane);
                (to.thinking, to.reason) = (Some(wanted), LaneReason::Wish);
            }
        }
        Ok(())
    }
}

fn cap(to: &mut Settled<'_>) {
    to.capped = true;
    to.reason = LaneReason::WishCapped;
}

fn budget(to: &mut Settled<'_>, wish: &Wish<'_>) -> Result<Option<u64>, Refused> {
    if to.thinking == Some(false) {
        return Ok(None);
    }
    let usual = to.lane.budget_or_usual().map(u64::from);
    let most = to.lane.budget_max.map_or(NO_LIMIT, u64::from);
    let wanted = wish.budget.or(usual);
    if wish.budget.is_some_and(|asked| asked > most) {
        if to.lane.wishes == Wishes::Refuse {
            return Err(Refused::Budget(to.lane.name.to_string(), most));
        }
        cap(to);
    }
    let held = wanted.map_or(most, |wanted| wanted.min(most));
    Ok(Some(held).filter(|held| *held != NO_LIMIT))
}

fn effort(to: &mut Settled<'_>, wish: &Wish<'_>) -> Result<Option<Effort>, Refused> {
    let (Some(asked), Some(most)) = (wish.effort, to.lane.effort) else {
        return Ok(wish.effort.or(to.lane.effort));
    };
    if asked <= most || to.lane.wishes == Wishes::Honour {
        return Ok(Some(asked));
    }
    if to.lane.wishes == Wishes::Refuse {
        return Err(Refused::Effort(to.lane.name.to_string(), most));
    }
    cap(to);
    Ok(Some(most))
}
