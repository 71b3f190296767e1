//! Makes the client of a bucket from its settings.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use object_store::{
    BackoffConfig, ClientOptions, CredentialProvider, ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, AwsCredential},
};
use server::secret_file::SecretFile;

use crate::{Error, settings::bucket::BucketSettings};

/// Time that connecting may take: queries wait for it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time that a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of immediate retries of a request; the passes over all files do the rest.
const RETRIES: usize = 1;

/// The bucket and the folder of a URL such as `s3://bucket/folder`.
pub(super) fn parse_url(url: &str) -> Result<(&str, &str), Error> {
    let invalid = |why| Error::Setting { name: "url", why };
    let path = url.strip_prefix("s3://").ok_or_else(|| invalid("it is not of the form s3://bucket/folder"))?;
    let (bucket, folder) = path.split_once('/').unwrap_or((path, ""));
    if bucket.is_empty() {
        return Err(invalid("it names no bucket"));
    }
    Ok((bucket, folder.trim_matches('/')))
}

/// A client, which has not connected yet.
pub(super) fn connect(settings: &BucketSettings, bucket: &str) -> Result<Arc<dyn ObjectStore>, Error> {
    let is_plain = settings.endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"));
    let options = ClientOptions::new().with_connect_timeout(CONNECT_TIMEOUT).with_timeout(REQUEST_TIMEOUT);
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_client_options(options)
        .with_allow_http(is_plain)
        .with_retry(retries());
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if let Some(region) = &settings.region {
        builder = builder.with_region(region);
    }
    if let Some(login) = Login::open(settings)? {
        builder = builder.with_credentials(Arc::new(login));
    }
    let store = builder.build().map_err(|source| Error::bucket("use", &settings.url, &source))?;
    Ok(Arc::new(store))
}

fn retries() -> RetryConfig {
    let backoff = BackoffConfig { init_backoff: Duration::from_millis(100), ..BackoffConfig::default() };
    RetryConfig { backoff, max_retries: RETRIES, retry_timeout: REQUEST_TIMEOUT }
}

/// An access key whose secret is in a file.
struct Login {
    access_key_id: String,
    secret_access_key: SecretFile,
}

impl Login {
    /// None if the environment has the credentials.
    fn open(settings: &BucketSettings) -> Result<Option<Self>, Error> {
        match (&settings.access_key_id, &settings.secret_access_key_file) {
            (None, None) => Ok(None),
            (Some(access_key_id), Some(path)) => {
                let secret_access_key = SecretFile::open(path)?;
                Ok(Some(Self { access_key_id: access_key_id.clone(), secret_access_key }))
            }
            (None, Some(_)) => Err(Error::Setting { name: "access_key_id", why: "set it, beside the secret's file" }),
            (Some(_), None) => Err(Error::Setting { name: "secret_access_key_file", why: "set it, beside the id" }),
        }
    }
}

impl std::fmt::Debug for Login {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Login").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

#[async_trait]
impl CredentialProvider for Login {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let secret_key = self.secret_access_key.current().expose().to_owned();
        Ok(Arc::new(AwsCredential { key_id: self.access_key_id.clone(), secret_key, token: None }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_bucket_and_a_folder() {
        assert_eq!(parse_url("s3://b/some/folder/").unwrap(), ("b", "some/folder"));
        assert_eq!(parse_url("s3://b").unwrap(), ("b", ""));
        for url in ["", "b/folder", "https://b/folder", "s3://", "s3:///folder"] {
            assert!(parse_url(url).is_err(), "{url}");
        }
    }

    #[test]
    fn an_access_key_is_named_with_its_secret_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        std::fs::write(&path, "very-secret\n").unwrap();
        let both = BucketSettings {
            access_key_id: Some("AKIA".to_owned()),
            secret_access_key_file: Some(path),
            ..BucketSettings::default()
        };
        let login = Login::open(&both).unwrap().unwrap();
        assert!(!format!("{login:?}").contains("very-secret"));
        assert!(Login::open(&BucketSettings::default()).unwrap().is_none());
        assert!(Login::open(&BucketSettings { access_key_id: None, ..both.clone() }).is_err());
        assert!(Login::open(&BucketSettings { secret_access_key_file: None, ..both }).is_err());
    }
}
