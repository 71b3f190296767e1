//! In place of the workbench's pool of threads: a page has one for this.

/// Processes `items` and reports each result in their order. An error of `report` ends the run.
pub(crate) fn map_in_order<T, R, W: FnMut(&T) -> R, E>(
    items: &[T],
    _workers: usize,
    make_worker: impl Fn() -> W,
    mut report: impl FnMut(&T, Option<R>) -> Result<(), E>,
) -> Result<(), E> {
    let mut worker = make_worker();
    items.iter().try_for_each(|item| report(item, Some(worker(item))))
}
