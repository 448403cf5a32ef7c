//! The `gateway` executable.

#![forbid(unsafe_code)]

use std::future::Future;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;
use gateway::cli::{Cli, Command, LogFormat};
use gateway::config::Config;
use gateway::serve::Gateway;
use gateway::serve::drain::Tasks;
use gateway::state::Known;
use gateway::state::policy::PolicyInUse;
use gateway::up;
use tokio::signal::unix::{SignalKind, signal};

/// What a shell expects of a process that Ctrl-C ended.
const EXIT_INTERRUPTED: i32 = 130;

type AnyError = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(
                clippy::print_stderr,
                reason = "why it ended is for the person who started it"
            )]
            {
                eprintln!("{error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<(), AnyError> {
    log_to_stderr(&cli)?;
    // Clients are served on threads of their own (`serve::threads`); this one has the probes and the operators.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match cli.command {
            Command::Serve { config } => {
                let config = Config::load(&config)?;
                let gateway = Gateway::bind(config).await?;
                reload_on_hangup(gateway.known())?;
                tracing::info!(
                    clients = %gateway.client_address()?,
                    operators = %gateway.admin_address()?,
                    "serving"
                );
                gateway.run(asked_to_stop()?).await;
                Ok(())
            }
            Command::Check { config } => check(&config),
            Command::Up(options) => Ok(up::run(options, asked_to_stop()?).await?),
            Command::Policy(command) => print(&gateway::policy::run(command)?),
            Command::Split(options) => Ok(gateway::split_cli::run(
                &options,
                std::io::stdin().lock(),
                std::io::stdout().lock(),
            )?),
        }
    })
}

fn check(path: &std::path::Path) -> Result<(), AnyError> {
    let config = Config::load(path)?;
    let policy = PolicyInUse::load(config.policy.as_deref(), &config.replicas)?;
    print(&format!(
        "{}: good; {} replicas, policy: {}\n",
        path.display(),
        config.replicas.len(),
        policy.source()
    ))
}

/// The answer that was asked for. A reader that has gone (`| head`) is no failure.
fn print(text: &str) -> Result<(), AnyError> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Reads the policy again at each SIGHUP. Only `serve` does: `up` belongs to a terminal and ends with it.
fn reload_on_hangup(known: &Arc<Known>) -> std::io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    let known = known.clone();
    // Not among the tasks that a shutdown waits for: it waits for the next signal.
    let (tasks, _) = Tasks::new();
    tasks.spawn(async move {
        while hangup.recv().await.is_some() {
            known.policy.ask();
        }
    });
    Ok(())
}

fn log_to_stderr(cli: &Cli) -> Result<(), AnyError> {
    let filter = tracing_subscriber::EnvFilter::try_new(&cli.log).map_err(|error| {
        format!(
            "--log `{}`: {error}; try `info` or `gateway=debug`",
            cli.log
        )
    })?;
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match cli.log_format {
        LogFormat::Text => logs.with_target(false).init(),
        LogFormat::Json => logs.json().init(),
    }
    Ok(())
}

/// Resolves at the first SIGTERM or Ctrl-C. The second ends the process at once, whatever is in flight.
fn asked_to_stop() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (asked, mut was_asked) = tokio::sync::watch::channel(false);
    // Not among the tasks that a shutdown waits for: it lives for the second signal.
    let (tasks, _) = Tasks::new();
    tasks.spawn(async move {
        for _ in 0..2 {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if asked.send_replace(true) {
                #[expect(clippy::disallowed_methods, reason = "main.rs may end the process")]
                std::process::exit(EXIT_INTERRUPTED);
            }
        }
    });
    Ok(async move {
        let _ = was_asked.wait_for(|asked| *asked).await;
    })
}
