//! Runs the connections and takes the readings at both ends of the measured window.

use crate::{
    args::Args,
    client::{Connection, Outgoing},
    conversation::Conversation,
    cpu::{self, CpuTime},
    prose::{Dice, Prose},
    tally::Tally,
};
use std::{cell::Cell, cell::RefCell, rc::Rc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

/// Bytes of the text pool from which all messages are cut.
const PROSE_BYTES: usize = 4 << 20;
/// Different short questions; a gateway that caches per request text meets each of them now and then.
const QUESTIONS: usize = 1_024;
/// Session numbers per seed: no run reaches the next seed's.
const SESSIONS_PER_SEED: u64 = 1 << 24;
/// How long answers that are still on their way at the end may take.
const LINGER: Duration = Duration::from_secs(10);
/// Pause after a failure, so that a target that refuses everything is not measured by its refusals.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(5);

/// One run's result.
pub(crate) struct Measured {
    pub(crate) tally: Tally,
    /// Length of the window.
    pub(crate) window: Duration,
    /// CPU time within the window of each watched group, in the order of the command line, and of this process.
    pub(crate) cpu: Vec<(String, CpuTime)>,
    /// Seconds that all CPUs together were busy within the window.
    pub(crate) machine_busy: f64,
}

/// What all connections share.
struct Shared {
    prose: Prose,
    questions: Vec<Conversation>,
    tally: RefCell<Tally>,
    next_session: Cell<u64>,
    body_bytes: usize,
    stream: bool,
    grows: bool,
    session_header: bool,
    end: Instant,
}

/// Sends the load and measures it. Needs a `LocalSet` around it.
pub(crate) async fn run(args: &Args) -> Measured {
    let shape = args.mode.shape();
    let body_bytes = args.body_bytes.unwrap_or(shape.body_bytes) as usize;
    let first_session = u64::from(args.seed) * SESSIONS_PER_SEED;
    let prose = Prose::new(
        PROSE_BYTES.max(2 * body_bytes),
        Dice::new(u64::from(args.seed)),
    );
    let questions = if shape.grows { 0 } else { QUESTIONS as u64 };
    let questions = (0..questions)
        .map(|i| Conversation::new(first_session + i, &prose, body_bytes))
        .collect();
    let start = Instant::now() + args.warmup;
    let shared = Rc::new(Shared {
        prose,
        questions,
        tally: RefCell::default(),
        next_session: Cell::new(first_session),
        body_bytes,
        stream: shape.stream,
        grows: shape.grows,
        session_header: !args.no_session_header,
        end: start + args.secs,
    });
    let mut connections = JoinSet::new();
    for i in 0..args.connections.unwrap_or(shape.connections) as usize {
        let connection = Connection::new(args.targets[i % args.targets.len()]);
        if shared.grows {
            connections.spawn_local(converse(shared.clone(), connection));
        } else {
            connections.spawn_local(ask(shared.clone(), connection, i));
        }
    }
    let measured = window(args, &shared, start).await;
    // Answers that are on their way may arrive, so that the next run finds the target idle.
    let _ = timeout(LINGER, async {
        while connections.join_next().await.is_some() {}
    })
    .await;
    Measured {
        tally: shared.tally.take(),
        ..measured
    }
}

/// Waits for the window's two ends and takes the readings there; the tally is not in the result yet.
async fn window(args: &Args, shared: &Shared, start: Instant) -> Measured {
    let me = ("loadgen".to_owned(), vec![std::process::id()]);
    let groups: Vec<(String, Vec<u32>)> = args
        .watch
        .iter()
        .map(|watch| (watch.name.clone(), watch.pids.clone()))
        .chain([me])
        .collect();
    let read = || {
        groups
            .iter()
            .map(|(_, pids)| cpu::of_processes(pids))
            .collect::<Vec<_>>()
    };
    sleep_until(start).await;
    let (from, busy, before) = (Instant::now(), cpu::machine_busy(), read());
    shared.tally.borrow_mut().open();
    sleep_until(shared.end).await;
    shared.tally.borrow_mut().close();
    let after = read();
    let machine_busy = cpu::machine_busy() - busy;
    let used = before
        .into_iter()
        .zip(after)
        .map(|(before, after)| after.since(before));
    let cpu = groups
        .iter()
        .map(|(name, _)| name.clone())
        .zip(used)
        .collect();
    Measured {
        tally: Tally::default(),
        window: from.elapsed(),
        cpu,
        machine_busy,
    }
}

/// Asks short questions one after the other, each of them a conversation of its own.
async fn ask(shared: Rc<Shared>, mut connection: Connection, index: usize) {
    // Connections start apart, so that they do not all ask the same question at once.
    let mut next = index * 37;
    while Instant::now() < shared.end {
        next = (next + 1) % shared.questions.len();
        shared.send(&mut connection, &shared.questions[next]).await;
    }
}

/// Holds conversations that grow turn by turn.
async fn converse(shared: Rc<Shared>, mut connection: Connection) {
    let mut conversation = shared.new_conversation();
    while Instant::now() < shared.end {
        if conversation.is_over() {
            conversation = shared.new_conversation();
        }
        shared.send(&mut connection, &conversation).await;
        conversation.grow(&shared.prose);
    }
}

impl Shared {
    fn new_conversation(&self) -> Conversation {
        let id = self.next_session.get();
        self.next_session.set(id + 1);
        Conversation::new(id, &self.prose, self.body_bytes)
    }

    async fn send(&self, connection: &mut Connection, conversation: &Conversation) {
        let body = conversation.body(self.stream);
        let bytes_out = body.left();
        let session = self.session_header.then(|| conversation.name());
        let outcome = connection
            .send(
                Outgoing {
                    body,
                    session,
                    stream: self.stream,
                },
                &self.tally,
            )
            .await;
        self.tally.borrow_mut().ended(bytes_out, outcome.as_ref());
        if outcome.is_err() {
            tokio::time::sleep(PAUSE_AFTER_ERROR).await;
        }
    }
}
