#include "core/resource/preference.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "support/random.h"

namespace hf::resource {
namespace {

using device::Inventory;
using device::Unit;

struct Machine {
  Inventory inventory;
  Offer offer;
};

// GPUs on two NUMA nodes, each two behind one switch.
Machine machine(unsigned count, unsigned replicas = 1) {
  Machine made;
  made.offer.resource = "nvidia.com/gpu";
  made.offer.replicas = replicas;
  for (unsigned i = 0; i < count; ++i) {
    Unit& unit = made.inventory.units.emplace_back();
    unit.uuid = "g" + std::to_string(100 + i);
    unit.pci = "0000:" + std::to_string(100 + i) + ":00.0";
    unit.numa = i < count / 2 ? 0 : 1;
    unit.bus = "pci" + std::to_string(*unit.numa) + "/switch" + std::to_string(i / 2) + "/" + unit.pci;
    for (unsigned replica = 0; replica < replicas; ++replica) {
      OfferedDevice device;
      device.device = unit.uuid;
      device.id = replicas > 1 ? unit.uuid + "::" + std::to_string(replica) : unit.uuid;
      device.unit = unit.uuid;
      device.numa = unit.numa;
      made.offer.devices.push_back(device);
    }
  }
  return made;
}

std::vector<std::string> ids_of(const Offer& offer) {
  std::vector<std::string> ids;
  std::ranges::transform(offer.devices, std::back_inserter(ids), &OfferedDevice::id);
  return ids;
}

using Ids = std::vector<std::string>;

Result<Ids> choose(const Machine& on, const Choice& choice, Spread spread = Spread::distributed) {
  return prefer(on.offer, choice, on.inventory, spread);
}

TEST(Preference, StaysOnOneNumaNodeAndBehindOneSwitch) {
  const Machine eight = machine(8);
  EXPECT_EQ(*choose(eight, {ids_of(eight.offer), {}, 2}), (Ids{"g100", "g101"}));
  EXPECT_EQ(*choose(eight, {{"g100", "g102", "g103", "g107"}, {}, 2}), (Ids{"g102", "g103"}));
  EXPECT_EQ(*choose(eight, {{"g100", "g104", "g105", "g106", "g107"}, {}, 4}), (Ids{"g104", "g105", "g106", "g107"}));
}

TEST(Preference, NvlinksCountMost) {
  Machine eight = machine(8);
  eight.inventory.units[0].nvlinks["0000:102:00.0"] = 4;
  eight.inventory.units[2].nvlinks["0000:100:00.0"] = 4;
  EXPECT_EQ(*choose(eight, {ids_of(eight.offer), {}, 2}), (Ids{"g100", "g102"}));
}

TEST(Preference, IncludesWhatItMust) {
  const Machine eight = machine(8);
  EXPECT_EQ(*choose(eight, {ids_of(eight.offer), {"g105"}, 2}), (Ids{"g104", "g105"}));
  EXPECT_EQ(*choose(eight, {ids_of(eight.offer), {"g105"}, 1}), (Ids{"g105"}));
}

TEST(Preference, SpreadsOrPacksReplicas) {
  const Machine four = machine(4, 3);
  Ids left = ids_of(four.offer);
  std::erase(left, "g100::0");  // g100 is used once
  EXPECT_EQ(choose(four, {left, {}, 1}, Spread::distributed)->front(), "g101::0");
  EXPECT_EQ(choose(four, {left, {}, 1}, Spread::packed)->front(), "g100::1");
  const Ids spread = *choose(four, {left, {}, 3}, Spread::distributed);
  EXPECT_EQ(spread, (Ids{"g101::0", "g102::0", "g103::0"}));
}

TEST(Preference, RefusesQuestionsWithoutAnAnswer) {
  const Machine four = machine(4);
  EXPECT_FALSE(choose(four, {{"g100"}, {}, 2}));
  EXPECT_FALSE(choose(four, {{"g100", "x"}, {}, 1}));
  EXPECT_FALSE(choose(four, {ids_of(four.offer), {"g100", "g101"}, 1}));
  EXPECT_EQ(choose(four, {ids_of(four.offer), {}, 0})->size(), 0U);
}

// On any machine: the count, the devices that must be included, only available ones, and the same for any order.
TEST(Preference, HoldsOnRandomMachines) {
  test::Random random(1);
  for (int round = 0; round < 200; ++round) {
    const Machine on = machine(2 + random.below(30), 1 + random.below(3));
    Choice choice;
    for (const std::string& id : ids_of(on.offer)) {
      if (!random.one_in(3)) {
        choice.available.push_back(id);
      }
    }
    if (choice.available.empty()) {
      continue;
    }
    choice.count = 1 + random.below(std::uint32_t(choice.available.size()));
    choice.must_include = {choice.available[random.below(std::uint32_t(choice.available.size()))]};
    const Spread spread = random.one_in(2) ? Spread::packed : Spread::distributed;
    const Result<Ids> chosen = choose(on, choice, spread);
    ASSERT_TRUE(chosen);
    EXPECT_EQ(chosen->size(), choice.count);
    EXPECT_TRUE(std::ranges::count(*chosen, choice.must_include.front()) == 1);
    for (const std::string& id : *chosen) {
      EXPECT_EQ(std::ranges::count(choice.available, id), 1);
      EXPECT_EQ(std::ranges::count(*chosen, id), 1);
    }
    std::ranges::reverse(choice.available);
    EXPECT_EQ(*choose(on, choice, spread), *chosen);
  }
}

}  // namespace
}  // namespace hf::resource
