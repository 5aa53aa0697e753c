//! HTTPS.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Reads the certificate chain and its key.
pub fn load(certificate: &Path, key: &Path) -> anyhow::Result<ServerConfig> {
    let text = fs_err::read(certificate).context("--tls-cert cannot be read")?;
    let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|e| anyhow!("{} is not a PEM certificate: {e}", certificate.display()))?;
    if chain.is_empty() {
        return Err(anyhow!("{} holds no certificate; give a PEM file with --tls-cert", certificate.display()));
    }
    let key_text = fs_err::read(key).context("--tls-key cannot be read")?;
    let private = PrivateKeyDer::from_pem_slice(&key_text)
        .map_err(|e| anyhow!("{} holds no usable private key: {e}; give a PEM file with --tls-key", key.display()))?;
    ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .context("TLS cannot be set up")?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .with_context(|| format!("the certificate {} and the key {} do not fit", certificate.display(), key.display()))
}
