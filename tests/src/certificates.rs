//! Certificates for one test.

use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

use crate::Scene;

/// Files of an authority, and of a server `localhost` and a client `device-1` that it vouches for.
#[derive(Debug)]
pub struct Certificates {
    /// Certificate of the authority.
    pub authority: PathBuf,
    /// Certificate of the server.
    pub server: PathBuf,
    /// Its key.
    pub server_key: PathBuf,
    /// Certificate of the client.
    pub client: PathBuf,
    /// Its key.
    pub client_key: PathBuf,
    /// Certificate and key of the client in one file.
    pub client_both: PathBuf,
}

impl Certificates {
    /// The subject of the client as in RFC 4514.
    pub const CLIENT: &'static str = "CN=device-1";

    /// Makes them in the folder of the scene.
    ///
    /// # Panics
    /// If the system gives no keys.
    #[must_use]
    pub fn new(scene: &Scene) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = named("test authority", "ca.test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = params.self_signed(&key).expect("a certificate");
        let issuer = Issuer::new(params, key);
        let issue = |name: &str, alternative: &str, purpose| {
            let key = KeyPair::generate().expect("a key");
            // Extensions make it version 3, which GnuTLS and OpenSSL ask of clients.
            let mut params = named(name, alternative);
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![purpose];
            (params.signed_by(&key, &issuer).expect("a certificate").pem(), key.serialize_pem())
        };
        let (server, server_key) = issue("localhost", "localhost", ExtendedKeyUsagePurpose::ServerAuth);
        let (client, client_key) = issue("device-1", "device-1", ExtendedKeyUsagePurpose::ClientAuth);
        Self {
            authority: scene.write("ca.pem", authority.pem()),
            server: scene.write("server.pem", server),
            server_key: scene.write("server.key", server_key),
            client_both: scene.write("client-both.pem", format!("{client}{client_key}")),
            client: scene.write("client.pem", client),
            client_key: scene.write("client.key", client_key),
        }
    }
}

fn named(name: &str, alternative: &str) -> CertificateParams {
    let mut params = CertificateParams::new([alternative.to_owned()]).expect("a DNS name");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
