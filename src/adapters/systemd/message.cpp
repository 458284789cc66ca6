#include "adapters/systemd/message.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <dbus/dbus.h>

#include "core/base/text.h"

// libdbus-1.a references two functions of libsystemd, which has no static archive, for socket activation, which we do
// not use. Weak: a program that links libsystemd keeps the real ones.
extern "C" {
[[gnu::weak]] int sd_listen_fds(int /*unset_environment*/) { return 0; }
[[gnu::weak]] int sd_is_socket(int /*fd*/, int /*family*/, int /*type*/, int /*listening*/) { return 0; }
}

namespace hf::systemd {
namespace {

constexpr std::size_t kLargest = std::size_t(16) << 20;
constexpr std::size_t kHead = 16;  // D-Bus: the lengths of a message are in its first bytes (DBUS_MINIMUM_HEADER_SIZE)

struct Release {
  void operator()(DBusMessage* message) const { dbus_message_unref(message); }
  void operator()(char* text) const { dbus_free(text); }
};
using Handle = std::unique_ptr<DBusMessage, Release>;

std::unexpected<Error> no_memory() { return fail(std::errc::not_enough_memory, "make a D-Bus message"); }

// libdbus aborts the process at an invalid string, so every string is validated first.
bool is_valid(const Call& call) {
  return dbus_validate_path(call.path.c_str(), nullptr) != FALSE &&
         std::ranges::all_of(call.arguments, [](const std::string& text) {
           return !text.contains('\0') && dbus_validate_utf8(text.c_str(), nullptr) != FALSE;
         });
}

Result<Handle> start(const Call& call) {
  if (!is_valid(call)) {
    return fail(std::errc::invalid_argument,
                "make a D-Bus message: " + quote(call.path) + " or an argument is malformed");
  }
  Handle message(dbus_message_new_method_call(call.destination, call.path.c_str(), call.interface, call.member));
  if (!message) {
    return no_memory();
  }
  dbus_message_set_auto_start(message.get(), FALSE);
  return message;
}

bool append_text(DBusMessageIter& iterator, const std::string& text) {
  const char* const start = text.c_str();
  return dbus_message_iter_append_basic(&iterator, DBUS_TYPE_STRING, static_cast<const void*>(&start)) != FALSE;
}

// Opens a D-Bus container, lets `fill` append its contents, closes it.
template <class Fill>
bool append_container(DBusMessageIter& iterator, int type, const char* signature, const Fill& fill) {
  DBusMessageIter inner;
  return dbus_message_iter_open_container(&iterator, type, signature, &inner) != FALSE && fill(inner) &&
         dbus_message_iter_close_container(&iterator, &inner) != FALSE;
}

bool append_entry(DBusMessageIter& iterator, const DeviceEntry& entry) {
  return append_container(iterator, DBUS_TYPE_STRUCT, nullptr, [&](DBusMessageIter& pair) {
    return append_text(pair, path_of(entry.device)) && append_text(pair, device::to_string(entry.access));
  });
}

bool append_entries(DBusMessageIter& iterator, const std::vector<DeviceEntry>& entries) {
  return append_container(iterator, DBUS_TYPE_ARRAY, "(ss)", [&](DBusMessageIter& list) {
    for (const DeviceEntry& entry : entries) {
      if (!append_entry(list, entry)) {
        return false;
      }
    }
    return true;
  });
}

// The properties a(sv) with one entry, DeviceAllow.
bool append_properties(DBusMessageIter& iterator, const std::vector<DeviceEntry>& entries) {
  return append_container(iterator, DBUS_TYPE_ARRAY, "(sv)", [&](DBusMessageIter& properties) {
    return append_container(properties, DBUS_TYPE_STRUCT, nullptr, [&](DBusMessageIter& property) {
      return append_text(property, "DeviceAllow") &&
             append_container(property, DBUS_TYPE_VARIANT, "a(ss)",
                              [&](DBusMessageIter& value) { return append_entries(value, entries); });
    });
  });
}

bool append_texts(DBusMessageIter& iterator, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (!append_text(iterator, text)) {
      return false;
    }
  }
  return true;
}

Result<std::string> to_bytes(const Handle& message, std::uint32_t serial) {
  dbus_message_set_serial(message.get(), serial);
  char* start = nullptr;
  int length = 0;
  if (dbus_message_marshal(message.get(), &start, &length) == FALSE) {
    return no_memory();
  }
  const std::unique_ptr<char, Release> owner(start);
  return std::string(start, std::size_t(length));
}

std::string text_or_none(const char* text) { return text != nullptr ? text : ""; }

// libdbus has checked the nesting: at most 64 levels.
void collect(DBusMessageIter& iterator, Message& message) {
  for (int type = dbus_message_iter_get_arg_type(&iterator); type != DBUS_TYPE_INVALID;
       type = dbus_message_iter_get_arg_type(&iterator)) {
    if (type == DBUS_TYPE_STRING || type == DBUS_TYPE_OBJECT_PATH || type == DBUS_TYPE_SIGNATURE) {
      const char* text = nullptr;
      dbus_message_iter_get_basic(&iterator, static_cast<void*>(&text));
      message.texts.emplace_back(text);
    } else if (type == DBUS_TYPE_BOOLEAN) {
      dbus_bool_t flag = FALSE;
      dbus_message_iter_get_basic(&iterator, &flag);
      message.flags.push_back(flag != FALSE);
    } else if (dbus_type_is_container(type) != FALSE) {
      DBusMessageIter inner;
      dbus_message_iter_recurse(&iterator, &inner);
      collect(inner, message);
    }
    dbus_message_iter_next(&iterator);
  }
}

Message::Kind kind_of(int type) {
  switch (type) {
    case DBUS_MESSAGE_TYPE_METHOD_RETURN: return Message::Kind::answer;
    case DBUS_MESSAGE_TYPE_ERROR: return Message::Kind::error;
    case DBUS_MESSAGE_TYPE_SIGNAL: return Message::Kind::signal;
    default: return Message::Kind::call;
  }
}

}  // namespace

Result<std::string> render_call(const Call& call, std::uint32_t serial) {
  const Handle message = TRY(start(call));
  DBusMessageIter iterator;
  dbus_message_iter_init_append(message.get(), &iterator);
  if (!append_texts(iterator, call.arguments)) {
    return no_memory();
  }
  return to_bytes(message, serial);
}

Result<std::string> render_device_allow(const Call& call, const std::vector<DeviceEntry>& entries,
                                        std::uint32_t serial) {
  const Handle message = TRY(start(call));
  DBusMessageIter iterator;
  const dbus_bool_t runtime = TRUE;
  dbus_message_iter_init_append(message.get(), &iterator);
  if (!append_texts(iterator, call.arguments) ||
      dbus_message_iter_append_basic(&iterator, DBUS_TYPE_BOOLEAN, &runtime) == FALSE ||
      !append_properties(iterator, entries)) {
    return no_memory();
  }
  return to_bytes(message, serial);
}

Result<std::size_t> length_of_first(std::string_view bytes) {
  const std::string head(bytes.substr(0, kHead));
  const int length = dbus_message_demarshal_bytes_needed(head.data(), int(head.size()));
  if (length < 0 || std::size_t(length) > kLargest) {
    return fail(std::errc::bad_message, "read a D-Bus message: it is none, or too long");
  }
  return std::size_t(length);
}

Result<Message> parse_message(std::string_view bytes) {
  DBusError error = DBUS_ERROR_INIT;
  const Handle parsed(dbus_message_demarshal(bytes.data(), int(bytes.size()), &error));
  if (!parsed) {
    const std::string why = text_or_none(error.message);
    dbus_error_free(&error);
    return fail(std::errc::bad_message, "read a D-Bus message: " + why);
  }
  Message message;
  message.kind = kind_of(dbus_message_get_type(parsed.get()));
  message.reply_to = dbus_message_get_reply_serial(parsed.get());
  message.sender = text_or_none(dbus_message_get_sender(parsed.get()));
  message.interface = text_or_none(dbus_message_get_interface(parsed.get()));
  message.member = text_or_none(message.kind == Message::Kind::error ? dbus_message_get_error_name(parsed.get())
                                                                     : dbus_message_get_member(parsed.get()));
  DBusMessageIter iterator;
  if (dbus_message_iter_init(parsed.get(), &iterator) != FALSE) {
    collect(iterator, message);
  }
  return message;
}

std::errc code_of(std::string_view error_name) {
  static constexpr std::pair<std::string_view, std::errc> kCodes[] = {
      {"org.freedesktop.systemd1.NoSuchUnit", std::errc::no_such_file_or_directory},
      {"org.freedesktop.systemd1.LoadFailed", std::errc::no_such_file_or_directory},
      {DBUS_ERROR_ACCESS_DENIED, std::errc::permission_denied},
      {DBUS_ERROR_AUTH_FAILED, std::errc::permission_denied},
      {DBUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, std::errc::permission_denied},
      {DBUS_ERROR_INVALID_ARGS, std::errc::invalid_argument},
      {DBUS_ERROR_UNKNOWN_METHOD, std::errc::function_not_supported},
      {DBUS_ERROR_UNKNOWN_INTERFACE, std::errc::function_not_supported},
      {DBUS_ERROR_UNKNOWN_PROPERTY, std::errc::function_not_supported},
      {DBUS_ERROR_SERVICE_UNKNOWN, std::errc::not_connected},
      {DBUS_ERROR_NAME_HAS_NO_OWNER, std::errc::not_connected},
      {DBUS_ERROR_NO_REPLY, std::errc::not_connected},  // the bus lost systemd during the call
      {DBUS_ERROR_LIMITS_EXCEEDED, std::errc::resource_unavailable_try_again},
      {DBUS_ERROR_NO_MEMORY, std::errc::not_enough_memory},
      {DBUS_ERROR_TIMEOUT, std::errc::timed_out},
      {DBUS_ERROR_TIMED_OUT, std::errc::timed_out}};
  for (const auto& [name, code] : kCodes) {
    if (name == error_name) {
      return code;
    }
  }
  return std::errc::io_error;
}

}  // namespace hf::systemd
