//! Looks for an application that somebody enters, before its messages are taken.

use bridge::{ApplicationCheck, Error};
use types::{Kind, Kinded, Secret};

use super::{client, is_of_stack, unusable};
use crate::{
    application::Application,
    settings::{ApiSettings, ThingsStackApplication, ThingsStackSettings},
};

/// Checks that an API can be used with this key, and that the key is for this application: its id and tenant.
pub async fn check_application(url: &str, key: &Secret, application: &str) -> Result<ApplicationCheck, Error> {
    let settings = ThingsStackSettings {
        applications: vec![ThingsStackApplication { id: application.to_owned(), key_file: None }],
        key: key.clone(),
        api: ApiSettings { url: url.to_owned(), ..ApiSettings::default() },
        ..ThingsStackSettings::default()
    };
    let applications = Application::all(&settings)?;
    let id = applications.first().map(|application| application.id()).unwrap_or_default();
    let api = client(&settings)?;
    match api.application_of(key).await {
        Ok(Some(other)) if other != id => {
            return Ok(ApplicationCheck::Missing(format!(
                "the API key is that of the application {other}: enter that one, or a key of {id}"
            )));
        }
        Ok(_) => {}
        // Not every cluster has the Identity Server, and its gateway does not know the call then.
        Err(error) if matches!(error.kind(), Kind::NotFound | Kind::Unsupported | Kind::Denied) => {}
        Err(error) => return Err(unusable(error, url)),
    }
    match api.link(key, id).await {
        Ok(_) => Ok(ApplicationCheck::Found(String::new())),
        // It has no settings on the Application Server yet, and rights are checked before.
        Err(error) if error.kind() == Kind::NotFound && is_of_stack(&error) => {
            Ok(ApplicationCheck::Found(String::new()))
        }
        Err(error) if error.kind() == Kind::Denied => Ok(ApplicationCheck::Missing(format!(
            "the API key may not read {id}, or this cluster does not have it ({error}): enter the id that the Console \
             shows, and a key of the application with the rights to view its settings and devices, and to read its \
             traffic"
        ))),
        Err(error) => Err(unusable(error, url)),
    }
}

#[cfg(test)]
mod tests {
    use server::status::ErrorChain;
    use testing::{THINGS_STACK_APPLICATION, THINGS_STACK_KEY, ThingsStackApi};

    use super::*;

    async fn checked(api: &ThingsStackApi, key: &str, application: &str) -> Result<ApplicationCheck, Error> {
        check_application(&api.url(), &Secret::new(key), application).await
    }

    #[tokio::test]
    async fn a_key_of_another_application_is_told_from_a_wrong_key() {
        server::system::install_crypto();
        let api = ThingsStackApi::start().await;
        let found = ApplicationCheck::Found(String::new());
        assert_eq!(checked(&api, THINGS_STACK_KEY, THINGS_STACK_APPLICATION).await.unwrap(), found);
        api.restrict_key("sensors");
        assert_eq!(checked(&api, THINGS_STACK_KEY, THINGS_STACK_APPLICATION).await.unwrap(), found);
        let Ok(ApplicationCheck::Missing(reason)) = checked(&api, THINGS_STACK_KEY, "attic@lab").await else {
            panic!("the key is not that of attic");
        };
        assert!(reason.contains("the application sensors"), "{reason}");
        let error = checked(&api, "wrong", THINGS_STACK_APPLICATION).await.unwrap_err();
        assert!(error.to_string().contains("does not accept an API key"), "{error}");
        let error = checked(&api, THINGS_STACK_KEY, "no id").await.unwrap_err();
        assert!(error.as_setting().is_some(), "{error}");
    }

    #[tokio::test]
    async fn what_is_no_cluster_is_said_to_be_none() {
        server::system::install_crypto();
        let refused = async |url: &str| {
            let key = Secret::new(THINGS_STACK_KEY);
            let error = check_application(url, &key, THINGS_STACK_APPLICATION).await.unwrap_err();
            ErrorChain(&error).to_string()
        };
        let away = refused("http://127.0.0.1:1").await;
        let once =
            "cannot use The Things Stack's API: cannot reach the API of The Things Stack at http://127.0.0.1:1: ";
        assert!(away.starts_with(once) && away.matches("check that").count() == 1, "{away}");
        assert!(refused("localhost").await.contains("bridge.things_stack.api.url"));
    }

    #[tokio::test]
    async fn a_cluster_that_fails_is_not_taken_for_something_else() {
        server::system::install_crypto();
        let api = ThingsStackApi::start().await;
        api.fail_calls(1);
        let error = checked(&api, THINGS_STACK_KEY, THINGS_STACK_APPLICATION).await.unwrap_err();
        let text = ErrorChain(&error).to_string();
        assert!(text.contains("it failed: try again in a minute") && !text.contains("is not a cluster"), "{text}");
        checked(&api, THINGS_STACK_KEY, THINGS_STACK_APPLICATION).await.unwrap();
    }
}
