//! TLS: a client trusts exactly the announced certificate.

use std::{net::SocketAddr, sync::Arc};

use airlock_client::{Error, Trust, account::AccountClient, discovery::DiscoveryClient};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::{ServerConfig, crypto::aws_lc_rs};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

/// A self-signed certificate like those of components: for localhost, with the CA flag.
fn certificate() -> (CertificateDer<'static>, PrivateKeyDer<'static>, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    (certificate.der().clone(), PrivateKeyDer::try_from(key.serialize_der()).unwrap(), certificate.pem())
}

/// Answers one HTTP request per TLS connection; returns the address and the certificate.
async fn serve() -> (SocketAddr, String) {
    let (certificate, key, pem) = certificate();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut request = [0; 4096];
            if stream.read(&mut request).await.is_ok() {
                let response = b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\nconnection: close\r\n\r\n{\"keys\":[]}";
                let _ = stream.write_all(response).await;
                let _ = stream.shutdown().await;
            }
        }
    });
    (address, pem)
}

async fn keys(address: SocketAddr, trust: &Trust) -> Result<usize, Error> {
    let client = AccountClient::with_trust(&format!("https://{address}"), trust)?;
    client.keys().await.map(|keys| keys.keys.len())
}

#[tokio::test]
async fn trusts_the_announced_certificate_even_if_it_is_a_ca() {
    let (address, pem) = serve().await;
    assert_eq!(keys(address, &Trust::Certificate(pem)).await.unwrap(), 0);
}

#[tokio::test]
async fn refuses_another_certificate() {
    let (address, _) = serve().await;
    let (_, _, other) = certificate();
    for trust in [Trust::Certificate(other), Trust::System] {
        let error = keys(address, &trust).await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_grpc_client_refuses_another_certificate_too() {
    let (address, _) = serve().await;
    let (_, _, other) = certificate();
    let client = DiscoveryClient::connect(&address.to_string(), &Trust::Certificate(other)).unwrap();
    let error = client.get_by_app_id(&"my-app".parse().unwrap()).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}
