//! Sessions of a group: the device of every member stays up, and its streams take transfers between their other commands.
//!
//! All sessions together are one run of the group: tags and signal slots count from when the sessions were opened. Streams of one session run
//! concurrently, also if one of them waits for another rank. A run that has the cores alone ([`Stream::run`](crate::session::Stream::run)) may hold collectives,
//! whose tags are those of its own calls: all ranks submit such runs in the same order, and in one stream. Programs of a stitcher
//! ([`ProgramStream`](crate::stitch::ProgramStream)) are such runs, and get the words of the group by themselves.

use pto_abi::GmAddr;
use pto_graph::group::Communicator;
use pto_sim_shim::group::TransferError;

use super::error::GroupError;
use super::member::{Membership, RankDevice};
use super::ranks::{Group, GroupParts};
use super::report::TransferCounts;
use super::transport::RankLocation;
use crate::device::Device;
use crate::session::{Session, SessionOptions};

/// The sessions of the members of this process.
///
/// When it is dropped, the sessions end, and then the devices are closed.
pub struct GroupSessions {
    // In front of the thread, which moves their transfers until they have ended.
    members: Vec<MemberSession>,
    /// The group without its members.
    rest: GroupParts,
}

/// The session of one member.
pub struct MemberSession {
    session: Session,
    /// `None`: it is being closed.
    rank: Option<Membership>,
    location: RankLocation,
    communicator: Communicator,
}

impl Group {
    /// Collective. Opens a session on the device of each member. Their streams take transfers as commands ([`Stream::transfer`](crate::session::Stream::transfer)).
    ///
    /// # Errors
    /// `Session`: one cannot be opened; the group is gone. `Disagree`: the other ranks open none. `Transport`: the group runs in virtual time, whose machines run to their
    /// ends; or its transport fails.
    pub fn sessions(mut self, options: &SessionOptions) -> Result<GroupSessions, GroupError> {
        if !self.has_thread() {
            let what = "a group in virtual time has no sessions; open one in real time (Group::open_local)";
            return Err(TransferError::Unsupported { what: what.to_owned() }.into());
        }
        self.begin()?;
        self.agree(pto_graph::symbol("sessions"))?;
        let mut rest = self.into_parts();
        let network = rest.options.network;
        let open = |member: RankDevice| {
            let (mut device, rank) = member.into_parts();
            let location = rank.location().clone();
            let communicator = rank.communicator(network).of_session();
            let mut words = Vec::new();
            communicator.encode(|word| words.push(word));
            device.set_group(words);
            let session = device.session(options.clone());
            let session =
                session.map_err(|source| GroupError::Session { rank: location.rank, source })?;
            rank.engine().into_iter().for_each(|engine| engine.enter_session());
            Ok(MemberSession { session, rank: Some(rank), location, communicator })
        };
        let members = std::mem::take(&mut rest.members).into_iter().map(open);
        let members = members.collect::<Result<Vec<_>, GroupError>>()?;
        Ok(GroupSessions { members, rest })
    }
}

impl GroupSessions {
    /// Those of the members of this process, by rank.
    #[must_use]
    pub fn members(&self) -> &[MemberSession] {
        &self.members
    }

    /// Closes the sessions when their streams are idle, and gives the group back.
    ///
    /// # Errors
    /// `InUse`: another call still uses the device of a session; the group is gone.
    pub fn close(mut self) -> Result<Group, GroupError> {
        let close = |member: MemberSession| {
            let rank = member.rank();
            let (device, rank) = member.close().ok_or(GroupError::InUse { rank })?;
            Ok(RankDevice::of_parts(device, rank))
        };
        let sessions = std::mem::take(&mut self.members).into_iter();
        self.rest.members = sessions.map(close).collect::<Result<Vec<_>, GroupError>>()?;
        Ok(Group::of_parts(self.rest))
    }
}

impl MemberSession {
    /// The rank.
    #[must_use]
    pub const fn rank(&self) -> u32 {
        self.location.rank
    }

    /// Where it is.
    #[must_use]
    pub const fn location(&self) -> &RankLocation {
        &self.location
    }

    /// The session. It ends with this value, also if it has other owners.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// The communicator of all ranks, which makes the transfers of streams and graphs.
    #[must_use]
    pub const fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// Where this rank's part of a window begins.
    ///
    /// # Errors
    /// `Window`: there is none with this number.
    pub fn window(&self, window: u32) -> Result<GmAddr, GroupError> {
        let missing = GroupError::Window { window, offset: 0, bytes: 0 };
        self.communicator.window(window).map(|window| window.base).map_err(|_| missing)
    }

    /// What was transferred since the sessions were opened, and why a transfer failed, if one did.
    #[must_use]
    pub fn transfers(&self) -> (TransferCounts, Option<String>) {
        let engine = self.rank.as_ref().and_then(Membership::engine);
        engine.map_or_else(Default::default, |engine| engine.of_session())
    }

    fn close(mut self) -> Option<(Device, Membership)> {
        let device = self.session.clone().close();
        let rank = self.rank.take()?;
        leave(&rank);
        let mut device = device?;
        device.set_group(Vec::new());
        Some((device, rank))
    }
}

impl Drop for MemberSession {
    fn drop(&mut self) {
        // The session first: what is under way ends with it.
        self.session.end();
        self.rank.iter().for_each(leave);
    }
}

fn leave(rank: &Membership) {
    rank.engine().into_iter().for_each(|engine| engine.leave_session());
}
