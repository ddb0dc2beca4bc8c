// The groups of a run's lanes: those of each rank or device of several; of one device alone, one group without a name.

// Ranks and CANN devices: a row's name begins with them.
const OWNER = /^((?:rank|device) \d+) (.+)$/;

// In the order of the lanes. `used` and `idle` divide a group's lanes by whether anything happened on them; `busy` counts the busy cores of a group with a name.
function groupsOf(run) {
  const owner = lane => lane.name.match(OWNER)?.[1] ?? "", owners = new Set(run.lanes.map(owner).filter(name => name));
  const isNamed = owners.size > 1, groups = new Map();
  run.lanes.forEach((lane, index) => {
    const name = isNamed ? owner(lane) : "";
    if (!groups.has(name)) groups.set(name, { name, used: [], idle: [] });
    lane.label = name ? lane.name.match(OWNER)[2] : lane.name;
    lane.group = [...groups.keys()].indexOf(name);
    (run.isUsed(lane) ? groups.get(name).used : groups.get(name).idle).push(index);
  });
  return [...groups.values()].map(group => ({ ...group, busy: group.name ? busyCounter(run, group.used) : null }));
}

// What a panel shows from the top on: headings of groups, lanes, and a line that stands for the idle lanes of a group.
// `folded` and `shown` hold the indices of groups: those whose lanes are not shown, those whose idle lanes are.
function linesOf(run, folded, shown) {
  const lines = [];
  run.groups.forEach((group, index) => {
    if (group.name) lines.push({ heading: index });
    if (group.name && folded.has(index)) return;
    lines.push(...group.used.map(lane => ({ lane })));
    if (!group.idle.length) return;
    lines.push({ idle: index });
    if (shown.has(index)) lines.push(...group.idle.map(lane => ({ lane })));
  });
  return lines;
}
