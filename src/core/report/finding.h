// Finding: one thing that is wrong, or will be: a stable code, a verdict, the evidence and the cure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hf::report {

// note: worth knowing, nothing to do. warning: will hurt, or hurts a little. critical: a container cannot work.
enum class Severity : std::uint8_t { note, warning, critical };
std::string to_string(Severity severity);

struct Finding {
  std::string code;  // "HF-101"; docs/FINDINGS.md has its page
  Severity severity = Severity::warning;
  std::string subject;    // "host", or the title of the container
  std::string container;  // its id; "" for the host
  std::string what;       // "lost the right to open /dev/nvidia0"; of the host a whole sentence
  std::string because;    // "its device rules were rewritten by systemd"; "" where `what` says all
  std::vector<std::string> evidence;
  std::vector<std::string> cure;        // commands for this host, or advice where no command helps
  std::vector<std::string> nodes = {};  // paths of the device nodes that it is about; not shown
  bool needs_all_cures = false;         // one after the other; false: each of them helps
};

std::string sentence_of(const Finding& finding);  // what it is, and because of what: its verdict in every rendering

// What programs decide by a code.
bool is_undecided(const Finding& finding);   // what a container may open could not be determined
bool is_denied(const Finding& finding);      // something took the right to open a device away
bool is_about_risk(const Finding& finding);  // nothing is lost yet, and nothing will keep it
// Devices that cannot be opened, and nothing else: a later probe from inside that opens them disproves it.
bool is_about_access(std::string_view code);
// Something that no process inside the container can have caused: the host, its engine or its driver is at fault.
bool is_hosts_fault(std::string_view code);
// Devices that the rules refuse, and nothing else: a later visit that leaves no loss disproves it.
bool is_about_rules(std::string_view code);
// Devices that the container asks for, and no trusted source gives it.
bool is_unconfirmed_request(std::string_view code);
// Worth knowing, and not shown unless all is asked for. A container that runs without the devices it asks for is shown:
// it may seem to work.
bool is_hidden(const Finding& finding);

}  // namespace hf::report
