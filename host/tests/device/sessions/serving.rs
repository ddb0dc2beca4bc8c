//! The example `serve`: a real executor awaits the events of a session.

#[path = "../../../examples/serve/server.rs"]
mod server;

/// All of them may be under way at once: fewer than a session has streams.
const REQUESTS: u16 = 500;

#[test]
fn requests_are_served_one_by_one_and_at_once() {
    let session = server::session().expect("a session");
    let twice = |request| server::input(request).iter().map(|x| 2.0 * x).collect::<Vec<_>>();
    let waited = server::one_by_one(&session, 20).expect("all are served");
    assert_eq!(waited, (0..20).map(twice).collect::<Vec<_>>());
    let awaited = server::at_once(&session, REQUESTS).expect("all are served");
    assert_eq!(awaited, (0..REQUESTS).map(twice).collect::<Vec<_>>());
}
