//! Starting the engine thread, and how it ends.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, mpsc};

use replica_core::text_stream::TokenText;

use super::config::{EngineConfig, StartError};
use super::handle::EngineHandle;
use super::shared::{Limits, QUEUE_WAKES_MAX, Shared};
use super::step::StepModel;
use super::worker::Worker;

/// The thread that owns the model.
pub struct EngineThread;

impl EngineThread {
    /// Starts a thread that computes what the returned handle is given, until `EngineHandle::drain` or until every
    /// handle and stream is gone.
    pub fn start(
        model: Box<dyn StepModel>,
        config: EngineConfig,
        vocabulary: Arc<dyn TokenText>,
    ) -> Result<EngineHandle, StartError> {
        let (kv_blocks, vocab) = (model.kv_blocks(), model.vocab());
        let problems = config.problems(kv_blocks, vocab);
        if !problems.is_empty() {
            return Err(StartError::Config(problems));
        }
        let (queue_max, context_max) = (config.queue_max, config.context_max);
        let limits = Limits {
            queue_max,
            context_max,
            vocab,
            kv_blocks,
        };
        let shared = Arc::new(Shared::new(limits, model.expert_load()));
        let (queue, commands) = mpsc::sync_channel(queue_max + QUEUE_WAKES_MAX);
        let worker = Worker::new(model, &config, vocabulary, commands, Arc::clone(&shared));
        let ending = Ending(Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || {
                // Bound first and so dropped last: when it speaks, the worker and its streams are gone.
                let _ending = ending;
                worker.run();
            })?;
        *shared.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(EngineHandle { shared, queue })
    }
}

/// Tells the async side that the thread has ended, by whichever way.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.healthy.store(false, Ordering::SeqCst);
        }
        self.0.stopped.send_replace(true);
    }
}
