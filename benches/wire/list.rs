//! Listing ten thousand devices, in pages of different sizes.

use std::time::Instant;

use api::handler::ApplicationIdentifier;

use crate::{
    dataset,
    figures::{Figures, median},
    services::Services,
};

/// How many devices the application has.
pub(crate) const LISTED_DEVICES: usize = 10_000;
const PAGE_SIZES: [usize; 2] = [100, 1000];

pub(crate) async fn measure(figures: &mut Figures, services: &Services, store: &str) {
    for limit in PAGE_SIZES {
        let mut pages = Vec::new();
        for offset in (0..LISTED_DEVICES).step_by(limit) {
            pages.push(page_ms(services, offset, limit).await);
        }
        let (whole, ends) = (pages.iter().sum::<f64>(), pages[pages.len() - 1] / pages[0]);
        let measured = format!("{whole:.0} ms, {:.1} ms a page, last ÷ first {ends:.1}", median(&mut pages));
        figures.add(&format!("{LISTED_DEVICES} devices in pages of {limit} over gRPC, {store}"), measured, "");
    }
}

async fn page_ms(services: &Services, offset: usize, limit: usize) -> f64 {
    let mut request = services.sign(ApplicationIdentifier { app_id: dataset::app_id(0).to_string() });
    request.metadata_mut().insert("offset", offset.into());
    request.metadata_mut().insert("limit", limit.into());
    let began = Instant::now();
    let answer = services.stub.clone().get_devices_for_application(request).await.unwrap();
    let taken = began.elapsed().as_secs_f64() * 1e3;
    assert_eq!(answer.metadata().get("total").unwrap(), &LISTED_DEVICES.to_string());
    assert_eq!(answer.into_inner().devices.len(), limit);
    taken
}
