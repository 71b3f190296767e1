//! The decoder of a load test, which its application has for as long as the test runs.

use anyhow::Context;
use api::handler::Application;
use client::handler::HandlerClient;
use types::AppId;

/// The functions that an application had before.
pub(super) struct Replaced {
    own: Application,
}

impl Replaced {
    /// Gives the application this decoder and no other uplink function.
    pub(super) async fn by(decoder: String, handler: &HandlerClient, app_id: &AppId) -> anyhow::Result<Self> {
        let own = handler.get_application(app_id).await?;
        let tested = Application {
            payload_format: "custom".to_owned(),
            decoder,
            converter: String::new(),
            validator: String::new(),
            ..own.clone()
        };
        handler.set_application(tested).await.context("the decoder cannot be used, so nothing was changed")?;
        Ok(Self { own })
    }

    pub(super) async fn restore(self, handler: &HandlerClient) -> anyhow::Result<()> {
        let restored = handler.set_application(self.own).await;
        restored.context(
            "cannot put back the application's own functions: set them again with `airlock applications pf set`",
        )
    }
}
