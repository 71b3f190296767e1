//! Looks for an application that somebody enters, before its events are taken.

use bridge::{ApplicationCheck, Error};
use client::{Trust, chirpstack::ChirpStackClient};
use futures::{StreamExt as _, stream};
use types::{Kind, Kinded, Secret};

use super::unusable;

/// Maximum number of tenants that are searched at once.
const SEARCHES_MAX: usize = 8;

/// Checks that an API can be used with this key, and looks for an application by its id or name.
pub async fn check_application(url: &str, api_key: &Secret, application: &str) -> Result<ApplicationCheck, Error> {
    let api = ChirpStackClient::connect(url, &Trust::System, api_key.clone())?;
    api.check().await.map_err(|error| unusable(error, url, None))?;
    Ok(match is_id(application) {
        true => by_id(&api, application).await,
        false => by_name(&api, application).await,
    })
}

async fn by_id(api: &ChirpStackClient, id: &str) -> ApplicationCheck {
    match api.application(id).await {
        Ok(response) => {
            let name = response.application.unwrap_or_default().name;
            ApplicationCheck::Found(format!("its name is {name}"))
        }
        Err(error) if error.kind() == Kind::NotFound => ApplicationCheck::Missing(
            "ChirpStack has no application with this id: copy it from the address of the application's page".to_owned(),
        ),
        Err(error) if is_of_key(&error) => ApplicationCheck::Missing(
            "ChirpStack has no application with this id, or the API key is that of another tenant: copy the id from \
             the address of the application's page, and use a key of its tenant, or a global one"
                .to_owned(),
        ),
        Err(error) => ApplicationCheck::unanswered(&error),
    }
}

async fn by_name(api: &ChirpStackClient, name: &str) -> ApplicationCheck {
    let tenants = match api.tenants().await {
        Ok(tenants) => tenants,
        Err(error) if is_of_key(&error) => {
            return ApplicationCheck::Uncertain(
                "the API key of a tenant cannot search for names, so only an uplink shows whether there is one with \
                 this name: to check it now, enter the id, which is in the address of the application's page"
                    .to_owned(),
            );
        }
        Err(error) => return ApplicationCheck::unanswered(&error),
    };
    let searches: Vec<_> = tenants.result.iter().map(|tenant| api.applications_named(&tenant.id, name)).collect();
    let mut pages = stream::iter(searches).buffer_unordered(SEARCHES_MAX);
    // Further pages are not searched, and of each page only the ids are kept.
    let (mut is_all, mut ids) = (tenants.total_count as usize <= tenants.result.len(), Vec::<String>::new());
    while let Some(page) = pages.next().await {
        let page = match page {
            Ok(page) => page,
            Err(error) => return ApplicationCheck::unanswered(&error),
        };
        is_all &= page.total_count as usize <= page.result.len();
        let found = page.result.into_iter().filter(|application| application.name == name);
        ids.extend(found.map(|application| application.id));
    }
    match &ids[..] {
        [id] => ApplicationCheck::Found(format!("its id is {id}")),
        [id, ..] => ApplicationCheck::Uncertain(format!(
            "{} applications have this name, and the events of all of them would be taken: enter the id of one, such \
             as {id}",
            ids.len()
        )),
        [] if is_all => ApplicationCheck::Missing(
            "ChirpStack has no application with this name: enter it as ChirpStack writes it, or enter the id, which \
             is in the address of the application's page"
                .to_owned(),
        ),
        [] => ApplicationCheck::Uncertain(
            "ChirpStack has too many applications to search them all: enter the id, which is in the address of the \
             application's page"
                .to_owned(),
        ),
    }
}

/// Returns true if the error is about the rights of the API key. ChirpStack has one status for both.
fn is_of_key(error: &client::Error) -> bool {
    matches!(error.kind(), Kind::Unauthenticated | Kind::Denied)
}

/// Returns true if the text is a UUID in lower case, as ids are in ChirpStack.
pub(crate) fn is_id(application: &str) -> bool {
    let is_digit = |(place, byte): (usize, u8)| match place {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase(),
    };
    application.len() == 36 && application.bytes().enumerate().all(is_digit)
}

#[cfg(test)]
mod tests {
    use server::status::ErrorChain;
    use testing::{CHIRPSTACK_APPLICATION, CHIRPSTACK_APPLICATION_NAME, CHIRPSTACK_TOKEN, ChirpStackApi};

    use super::*;

    const OTHER: &str = "52f14cd4-c6f1-4fbd-8f87-4025e1d49242";

    async fn checked(api: &ChirpStackApi, application: &str) -> ApplicationCheck {
        check_application(&api.url(), &Secret::new(CHIRPSTACK_TOKEN), application).await.unwrap()
    }

    #[tokio::test]
    async fn an_application_is_found_by_id_and_by_name_and_is_missing_otherwise() {
        server::system::install_crypto();
        let api = ChirpStackApi::start().await;
        let by_id = checked(&api, CHIRPSTACK_APPLICATION).await;
        assert_eq!(by_id, ApplicationCheck::Found(format!("its name is {CHIRPSTACK_APPLICATION_NAME}")));
        // The search of ChirpStack finds parts of names, in any case.
        api.add_application("another", &format!("{}-2", CHIRPSTACK_APPLICATION_NAME.to_uppercase()));
        let by_name = checked(&api, CHIRPSTACK_APPLICATION_NAME).await;
        assert_eq!(by_name, ApplicationCheck::Found(format!("its id is {CHIRPSTACK_APPLICATION}")));
        for missing in [OTHER, "attic", "LAB"] {
            assert!(matches!(checked(&api, missing).await, ApplicationCheck::Missing(_)), "{missing}");
        }
        api.add_application(OTHER, CHIRPSTACK_APPLICATION_NAME);
        let ApplicationCheck::Uncertain(reason) = checked(&api, CHIRPSTACK_APPLICATION_NAME).await else {
            panic!("two have the name");
        };
        assert!(reason.starts_with("2 applications"), "{reason}");
    }

    #[tokio::test]
    async fn the_key_of_a_tenant_finds_an_application_by_its_id_only() {
        server::system::install_crypto();
        let api = ChirpStackApi::start().await;
        api.restrict_token();
        assert!(matches!(checked(&api, CHIRPSTACK_APPLICATION).await, ApplicationCheck::Found(_)));
        let ApplicationCheck::Missing(reason) = checked(&api, OTHER).await else { panic!("there is none") };
        assert!(reason.contains("another tenant"), "{reason}");
        for name in [CHIRPSTACK_APPLICATION_NAME, "attic"] {
            assert!(matches!(checked(&api, name).await, ApplicationCheck::Uncertain(_)), "{name}");
        }
    }

    #[tokio::test]
    async fn a_wrong_key_and_a_wrong_address_are_told_apart() {
        server::system::install_crypto();
        let api = ChirpStackApi::start().await;
        let refused = async |url: &str, key: &str| {
            let error = check_application(url, &Secret::new(key), "lab").await.unwrap_err();
            ErrorChain(&error).to_string()
        };
        assert!(refused(&api.url(), "wrong").await.contains("does not accept the API key;"));
        let away = refused("http://127.0.0.1:1", CHIRPSTACK_TOKEN).await;
        let once = "cannot use ChirpStack's API: cannot reach the ChirpStack API at 127.0.0.1:1: ";
        assert!(away.starts_with(once) && away.matches("check that").count() == 1, "{away}");
    }
}
