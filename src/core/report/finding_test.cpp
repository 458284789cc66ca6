#include "core/report/finding.h"

#include <gtest/gtest.h>

namespace hf::report {
namespace {

TEST(SentenceOf, JoinsWhatAndBecause) {
  Finding finding;
  finding.what = "lost the right to open /dev/nvidia0";
  EXPECT_EQ(sentence_of(finding), "lost the right to open /dev/nvidia0");
  finding.because = "its device rules were rewritten by systemd: twice";
  EXPECT_EQ(sentence_of(finding),
            "lost the right to open /dev/nvidia0: its device rules were rewritten by systemd: twice");
}

TEST(Codes, HaveTheirProperties) {
  struct Case {
    const char* code;
    bool is_about_risk;
    bool is_about_access;
    bool is_hosts_fault;
    bool is_about_rules;
    bool is_unconfirmed_request;
  };
  for (const Case& it :
       {Case{"HF-101", false, true, true, true, false}, Case{"HF-102", false, true, false, true, false},
        Case{"HF-105", false, false, false, false, false}, Case{"HF-112", false, true, true, false, false},
        Case{"HF-116", false, true, false, false, false}, Case{"HF-117", false, false, false, false, false},
        Case{"HF-125", false, false, false, false, true}, Case{"HF-128", false, false, true, false, false},
        Case{"HF-204", true, false, false, false, false}, Case{"HF-301", false, false, false, false, false},
        Case{"", false, false, false, false, false}}) {
    Finding finding;
    finding.code = it.code;
    finding.severity = Severity::warning;
    EXPECT_EQ(is_about_risk(finding), it.is_about_risk) << it.code;
    finding.severity = Severity::note;
    EXPECT_FALSE(is_about_risk(finding)) << it.code;
    EXPECT_EQ(is_about_access(it.code), it.is_about_access) << it.code;
    EXPECT_EQ(is_hosts_fault(it.code), it.is_hosts_fault) << it.code;
    EXPECT_EQ(is_about_rules(it.code), it.is_about_rules) << it.code;
    EXPECT_EQ(is_unconfirmed_request(it.code), it.is_unconfirmed_request) << it.code;
  }
}

}  // namespace
}  // namespace hf::report
