//! TLS on the client listener. The files are looked at every few seconds, and a new pair is swapped in whole; one
//! that does not work leaves the old one serving.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::time::{MissedTickBehavior, interval};

use super::drain::Tasks;
use crate::config::TlsFiles;
use crate::metrics::Metrics;

/// Between two looks at the files.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The certificate in use.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    current: ArcSwap<ServerConfig>,
}

/// When each file was last written; `None` where that cannot be told.
type Stamp = [Option<SystemTime>; 2];

impl Tls {
    /// Loads the pair.
    ///
    /// # Errors
    /// A file cannot be read or is not what it should be, or the two do not belong together.
    pub fn load(files: TlsFiles) -> Result<Arc<Self>, String> {
        let current = ArcSwap::from_pointee(read(&files)?);
        Ok(Arc::new(Self { files, current }))
    }

    /// An acceptor with the certificate in use now.
    #[must_use]
    pub fn acceptor(&self) -> tokio_rustls::TlsAcceptor {
        self.current.load_full().into()
    }

    /// Starts the task that takes up new files.
    pub fn watch(self: &Arc<Self>, tasks: &Tasks, metrics: Metrics) {
        let (tls, mut stop) = (self.clone(), tasks.stop());
        tasks.spawn(async move {
            let mut seen = tls.stamp();
            let mut looks = interval(LOOK_EVERY);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    () = stop.wait() => return,
                    _ = looks.tick() => {}
                }
                let stamp = tls.stamp();
                if stamp != seen {
                    seen = stamp;
                    metrics.tls_reload(tls.reload());
                }
            }
        });
    }

    fn stamp(&self) -> Stamp {
        let modified = |path: &Path| {
            std::fs::metadata(path)
                .and_then(|meta| meta.modified())
                .ok()
        };
        [modified(&self.files.cert), modified(&self.files.key)]
    }

    /// Swaps the pair in, or keeps the old one. Returns whether it was swapped.
    fn reload(&self) -> bool {
        match read(&self.files) {
            Ok(config) => {
                self.current.store(Arc::new(config));
                tracing::info!(cert = %self.files.cert.display(), "new certificate in use");
                true
            }
            // While a pair is replaced, one file is new and the other old for a moment; the next look sees both.
            Err(why) => {
                tracing::warn!(
                    why,
                    "the certificate files changed but do not work; the old pair stays in use"
                );
                false
            }
        }
    }
}

fn read(files: &TlsFiles) -> Result<ServerConfig, String> {
    let at = |path: &Path, why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(&files.cert)
        .map_err(|error| at(&files.cert, &error))?
        .collect();
    let chain = chain.map_err(|error| at(&files.cert, &error))?;
    if chain.is_empty() {
        return Err(at(
            &files.cert,
            &"no certificate in it, expected a PEM chain, leaf first",
        ));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| at(&files.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| at(&files.cert, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
