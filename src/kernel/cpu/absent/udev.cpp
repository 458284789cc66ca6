// hwloc asks udev for the names of disks, which holdfast does not need, and Debian has no static library of libudev.
// These functions replace it and report that there is no udev.
// NOLINTBEGIN(misc-use-internal-linkage)
struct udev;
struct udev_device;

extern "C" {
udev* udev_new();
udev* udev_unref(udev* handle);
udev_device* udev_device_new_from_subsystem_sysname(udev* handle, const char* subsystem, const char* name);
udev_device* udev_device_unref(udev_device* device);
const char* udev_device_get_property_value(udev_device* device, const char* key);
}

udev* udev_new() { return nullptr; }
udev* udev_unref(udev*) { return nullptr; }
udev_device* udev_device_new_from_subsystem_sysname(udev*, const char*, const char*) { return nullptr; }
udev_device* udev_device_unref(udev_device*) { return nullptr; }
const char* udev_device_get_property_value(udev_device*, const char*) { return nullptr; }
// NOLINTEND(misc-use-internal-linkage)
